//! Which certificate authorities the clients trust: Mozilla's, which are built in, or those that the environment names.

use std::path::PathBuf;

use aws_smithy_http_client::tls::TrustStore;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_native_certs::load_certs_from_paths;
use rustls_pki_types::CertificateDer;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

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
pub(super) fn store(files: &[TrustedFile]) -> Result<TrustStore, NoCertificate> {
    if files.is_empty() {
        return Ok(of(TLS_SERVER_ROOT_CERTS));
    }
    let mut certificates = Vec::new();
    for file in files {
        certificates.append(&mut file.read()?);
    }
    Ok(of(&certificates))
}

impl TrustedFile {
    /// Its certificates, without those that nothing can be checked against, of which a system's bundle may hold some.
    fn read(&self) -> Result<Vec<CertificateDer<'static>>, NoCertificate> {
        let mut read = if self.path.is_dir() {
            load_certs_from_paths(None, Some(&self.path))
        } else {
            load_certs_from_paths(Some(&self.path), None)
        };
        read.certs.retain(|certificate| webpki::anchor_from_trusted_cert(certificate).is_ok());
        if read.certs.is_empty() {
            let problem = read.errors.first().map_or("it holds none".into(), ToString::to_string);
            return Err(NoCertificate { variable: self.variable, path: self.path.clone(), problem });
        }
        Ok(read.certs)
    }
}

/// The SDK takes certificates as text only.
fn of(certificates: &[CertificateDer<'_>]) -> TrustStore {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        STANDARD.encode_string(certificate, &mut pem);
        pem.push_str("\n-----END CERTIFICATE-----\n");
    }
    TrustStore::empty().with_pem_certificate(pem)
}
