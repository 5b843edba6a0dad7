use std::io::Write;

use comeback_engine::{BatchEvent, FailedEvent, FunctionPattern, Policy, Record, SettingError};

use crate::clock::now;
use crate::event::arguments::EventArguments;
use crate::event::shift::shifted;
use crate::failure::{BadFile, Failure};
use crate::flags::PolicyFlags;
use crate::replay::{EventFile, SAMPLE_TARGET, last_due, text_of};

pub(crate) fn run(arguments: &EventArguments) -> Result<(), Failure> {
    let path = &arguments.file;
    let text = text_of(path)?;
    let EventFile::Sqs(batch) = EventFile::read(path, &text)? else {
        let problem = "not an SQS event: a payload for the target has no times to shift";
        return Err(BadFile::new(path, problem).into());
    };
    let policy =
        policy_for(&arguments.policy, &batch).map_err(|refused| Failure::refused(refused, vec![]))?;
    let moment = arguments.at.or_else(|| last_due(&batch, &policy));
    let moment =
        moment.ok_or_else(|| BadFile::new(path, "no message has the times that SQS always writes"))?;
    let shifted = shifted(path, &text, moment, now())?;
    anstream::stdout().write_all(shifted.as_bytes())?;
    Ok(())
}

/// Allows every function that the messages name: this command decides about nothing.
fn policy_for(flags: &PolicyFlags, batch: &BatchEvent) -> Result<Policy, Vec<SettingError>> {
    let arn = |record: &Record| FailedEvent::read(record).ok().map(|event| event.function_arn.to_string());
    let mut arns: Vec<String> = batch.records.iter().filter_map(arn).collect();
    arns.retain(|arn| arn.parse::<FunctionPattern>().is_ok());
    arns.push(SAMPLE_TARGET.into());
    flags.policy(&arns.join(","))
}
