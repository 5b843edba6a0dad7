//! Files that contain dead-letters: exports for the browser to download, and uploads to import.
//!
//! The files are in the folder where the server was started, readable only by the server's user. After the server has
//! stopped, `comeback dead import` can import them or continue an import. An upload is named after a digest of its
//! content, so uploading it again continues the import.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest as _, Multipart};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use comeback_engine::Timestamp;
use comeback_operate::dead::pace::Pace;
use comeback_operate::dead::{self, Import};
use comeback_operate::{CommandName, Failure, Layout};
use futures_util::stream::try_unfold;
use sha2::{Digest as _, Sha256};

use crate::change::{ChangeForm, RequestedChange};
use crate::dead::parts::{described, selection, snapshot};
use crate::page::{Fields, Problem, Visit};
use crate::performer::perform_in_background;
use crate::response::go_to;
use crate::work::{ONCE, WorkSummary};

/// Maximum size of an upload, in bytes.
pub(super) const LARGEST_UPLOAD: usize = 1 << 30;
/// Maximum number of bytes that a download reads from its file at a time.
const PIECE: usize = 64 << 10;
const ENDING: &str = ".jsonl";

/// Returns a name such as `discarded-20261126-173500-145.jsonl`.
pub(super) fn new_file_name(what: &str, now: Timestamp) -> String {
    let digits: String = now.to_string().chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    format!("{what}-{day}-{time}{ENDING}")
}

/// Returns `name` if it has the format of the console's own file names. They contain no folder, so a form cannot name a
/// file in another folder.
pub(super) fn file_name(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(ENDING)?;
    let is_plain =
        stem.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let is_ours = ["discarded-", "exported-", "imported-"].iter().any(|what| stem.starts_with(what));
    (is_plain && is_ours).then_some(name)
}

pub(super) async fn export(visit: Visit, fields: Fields) -> Result<Response, Problem> {
    let [once] = fields.required([ONCE])?.map(ToOwned::to_owned);
    let selection = selection(&fields)?;
    let snapshot = snapshot(&visit.console)?;
    let name = new_file_name("exported", visit.console.now());
    let title = format!("Export {}", described(&snapshot, &selection));
    let summary = WorkSummary {
        file: Some(name.clone()),
        reads_dead_letters: true,
        ..WorkSummary::new(title, "/dead", "/dead")
    };
    perform_in_background(&visit.console, &once, summary, |performer| async move {
        let dead = &performer.console.dead;
        let snapshot = dead.snapshot_of(fields.get("scan"))?;
        let path = dead.folder().join(&name);
        let (summary, end) = dead::export(&performer.operator().await?, &snapshot, &selection, &path).await?;
        let mut layout = Layout::default();
        layout.line(summary);
        performer.screen.show(layout);
        end
    })
}

/// Sends the browser a file that this server has written. The file contains payloads, so only a form with the form
/// secret can request it.
pub(super) async fn download(visit: Visit, fields: Fields) -> Result<Response, Problem> {
    let name = fields.get("name").and_then(file_name).ok_or(Problem::Missing)?;
    let dead = &visit.console.dead;
    if !dead.files().iter().any(|known| known == name) {
        return Err(Problem::Missing);
    }
    let path = dead.folder().join(name);
    let file =
        File::open(&path).map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
    let pieces = try_unfold(file, async |mut file| {
        let mut piece = vec![0; PIECE];
        let length = file.read(&mut piece)?;
        piece.truncate(length);
        Ok::<_, std::io::Error>((length > 0).then_some((piece, file)))
    });
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [(CONTENT_TYPE, "application/x-ndjson".to_owned()), (CONTENT_DISPOSITION, disposition)];
    Ok((StatusCode::OK, headers, Body::from_stream(pieces)).into_response())
}

/// Stores an uploaded file and redirects to the plan for importing it.
pub(super) async fn receive(mut visit: Visit) -> Result<Response, Problem> {
    let refused = |error: MultipartError| Problem::Refused(error.status(), error.body_text());
    let mut parts = Multipart::from_request(visit.take_request(), &())
        .await
        .map_err(|rejected| Problem::Refused(rejected.status(), rejected.body_text()))?;
    let mut has_secret = false;
    while let Some(part) = parts.next_field().await.map_err(refused)? {
        match part.name() {
            Some("secret") => has_secret = visit.has_secret(&part.text().await.map_err(refused)?),
            // The form's secret is the first part of the upload. A file that arrives without the secret is not stored.
            Some("file") if has_secret => {
                let folder = visit.console.dead.folder();
                let (name, is_new) = store(part, &folder).await?;
                let path = folder.join(&name);
                if let Err(failure) = dead::import::check(&path) {
                    if is_new {
                        let _ = std::fs::remove_file(&path);
                    }
                    return Err(Problem::bad_request(failure.to_string()));
                }
                return Ok(go_to(&format!("/dead/import?file={name}")));
            }
            _ => break,
        }
    }
    Err(if has_secret { Problem::incomplete() } else { Problem::without_secret() })
}

/// Stores an upload under a name derived from its content. Returns the name, and true if the file is new.
async fn store(mut part: Field<'_>, folder: &PathBuf) -> Result<(String, bool), Problem> {
    let failure = |error: std::io::Error| Failure::could_not(format!("{}: {error}", folder.display()));
    let mut file = tempfile::Builder::new().prefix("uploading-").tempfile_in(folder).map_err(failure)?;
    let (mut digest, mut length) = (Sha256::new(), 0);
    while let Some(piece) =
        part.chunk().await.map_err(|error| Problem::Refused(error.status(), error.body_text()))?
    {
        digest.update(&piece);
        length += piece.len();
        file.write_all(&piece).map_err(failure)?;
    }
    if length == 0 {
        return Err(Problem::bad_request("Choose a file that is not empty."));
    }
    file.as_file().sync_all().map_err(failure)?;
    let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name = format!("imported-{digest}{ENDING}");
    match file.persist_noclobber(folder.join(&name)) {
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(failure(error.error).into())
        }
        // An existing file is kept, with the record of what was imported from it.
        stored => Ok((name, stored.is_ok())),
    }
}

pub(super) static IMPORT: ChangeForm = ChangeForm {
    path: "/dead/import",
    title: "Import",
    about: "The import records its progress beside the file. If it stops early, upload the same file again or run the \
            command below: both continue where it stopped.",
    command: CommandName::Import,
    inputs: &[],
    read: |form, visit, fields| {
        visit.refuse_if_read_only()?;
        let name = fields.get("file").and_then(file_name).ok_or(Problem::Missing)?;
        let file = visit.console.dead.folder().join(name);
        Ok(RequestedChange {
            note: format!("This is about the file {name}."),
            command: visit.console.command(form.command, [file.display().to_string()]),
            change: Some(Ok(Box::new(Import { file, pace: Pace::FILE }))),
            fields,
            ..RequestedChange::default()
        })
    },
    back: "/dead",
    reads_dead_letters: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_files_have_names() {
        let name = new_file_name("discarded", Timestamp::from_secs(1_700_000_000));
        assert_eq!(name, "discarded-20231114-221320000.jsonl");
        for name in [&*name, "imported-0123456789abcdef.jsonl"] {
            assert_eq!(file_name(name), Some(name));
        }
        for name in
            ["discarded-../x.jsonl", "discarded-1.jsonl.done", "dead-letters.jsonl", "imported-\\x.jsonl", ""]
        {
            assert_eq!(file_name(name), None, "{name}");
        }
    }
}
