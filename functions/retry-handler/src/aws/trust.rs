//! Which certificate authorities the clients trust: Mozilla's, which are built in, or those that the environment names.

use std::path::PathBuf;

use rustls::RootCertStore;
use rustls_native_certs::load_certs_from_paths;
use webpki_roots::TLS_SERVER_ROOTS;

/// A file of certificates (PEM), or a folder of such files, and the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustedFile {
    pub(crate) variable: &'static str,
    pub(crate) path: PathBuf,
}

/// A variable that names no certificate that could be trusted.
#[derive(Debug, thiserror::Error)]
#[error(
    "{variable} is {path:?}, from which no certificate could be read ({problem}); name a file of certificates in PEM"
)]
pub(crate) struct NoCertificate {
    variable: &'static str,
    path: PathBuf,
    problem: String,
}

/// If any files are named, only these are trusted.
pub(super) fn store(files: &[TrustedFile]) -> Result<RootCertStore, NoCertificate> {
    if files.is_empty() {
        return Ok(RootCertStore { roots: TLS_SERVER_ROOTS.to_vec() });
    }
    let mut store = RootCertStore::empty();
    for file in files {
        file.add_to(&mut store)?;
    }
    Ok(store)
}

impl TrustedFile {
    /// Adds its certificates, without those that nothing can be checked against, of which a system's bundle may hold some.
    fn add_to(&self, store: &mut RootCertStore) -> Result<(), NoCertificate> {
        let read = if self.path.is_dir() {
            load_certs_from_paths(None, Some(&self.path))
        } else {
            load_certs_from_paths(Some(&self.path), None)
        };
        let (added, _) = store.add_parsable_certificates(read.certs);
        if added == 0 {
            let problem = read.errors.first().map_or("it holds none".into(), ToString::to_string);
            return Err(NoCertificate { variable: self.variable, path: self.path.clone(), problem });
        }
        Ok(())
    }
}
