use std::io::Write as _;
use std::time::Duration;

use comeback_engine::LONG_PAUSE;
use comeback_operate::{Deployment, OpenPause};
use comfy_table::{Attribute, Cell};

use crate::failure::Failure;
use crate::text::durations;
use crate::text::terminal::table;

/// The open pauses: a table, or a line for each.
pub(super) fn print(
    pauses: Option<Vec<OpenPause>>,
    deployment: &Deployment,
    json: bool,
) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let Some(pauses) = pauses else {
        let handler = &deployment.handler;
        anstream::eprintln!("note: the handler {handler} reads no pauses: its variable PAUSES is not set");
        return Ok(());
    };
    if json {
        pauses.iter().try_for_each(|pause| writeln!(out, "{}", serde_json::json!(pause)))?;
    } else {
        write!(out, "{}", text(&pauses))?;
    }
    for pause in pauses.iter().filter(|pause| Duration::from_secs(pause.open_seconds) > LONG_PAUSE) {
        let open = durations::short(pause.open_seconds as f64);
        anstream::eprintln!("warning: {} is paused for {open}: has it been forgotten?", name(pause));
    }
    Ok(())
}

fn text(pauses: &[OpenPause]) -> String {
    if pauses.is_empty() {
        return "nothing is paused\n".to_owned();
    }
    let mut table = table();
    let heads = ["function", "since", "until", "by", "why", "new events"];
    table.set_header(heads.map(|head| Cell::new(head).add_attribute(Attribute::Bold)));
    for pause in pauses {
        table.add_row([
            name(pause),
            pause.from.to_string(),
            pause.until.map_or_else(|| "resume".to_owned(), |until| until.to_string()),
            pause.by.clone().unwrap_or_default(),
            pause.why.clone().unwrap_or_default(),
            if pause.is_hard { "stopped too" } else { "run" }.to_owned(),
        ]);
    }
    format!("{table}\n")
}

/// `name` or `name:qualifier`, after `arn:aws:lambda:REGION:ACCOUNT:function:`.
fn name(pause: &OpenPause) -> String {
    match pause.target.as_str() {
        "*" => "every function".to_owned(),
        arn => arn.splitn(7, ':').last().unwrap_or(arn).to_owned(),
    }
}
