//! AWS's clock: this machine's clock, corrected with the `Date` header of AWS's responses. Commands write times that
//! the handler compares with its own clock, so the times must not depend on this machine's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeDeserializationInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::DateTime;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::date_time::Format;
use comeback_engine::Timestamp;

use crate::clock::now;

/// Smaller differences from AWS's clock are ignored: a `Date` header is in whole seconds, and a response takes time.
const TOLERATED_MILLIS: u64 = 5_000;

/// The clock of an account, shared by the clients of all services.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// AWS's time minus this machine's time, in milliseconds.
    ahead: Arc<AtomicI64>,
}

impl Clock {
    pub(super) fn now(&self) -> Timestamp {
        let millis = now().as_millis().saturating_add_signed(self.ahead.load(Ordering::Relaxed));
        Timestamp::from_millis(millis)
    }

    fn set(&self, time: Timestamp) {
        if time.as_millis().abs_diff(self.now().as_millis()) >= TOLERATED_MILLIS {
            let ahead = time.as_millis().cast_signed() - now().as_millis().cast_signed();
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }
}

impl Intercept for Clock {
    fn name(&self) -> &'static str {
        "Clock"
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let time = date.and_then(|date| DateTime::from_str(date, Format::HttpDate).ok());
        if let Some(seconds) = time.and_then(|time| u64::try_from(time.secs()).ok()) {
            self.set(Timestamp::from_secs(seconds));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::Aws as _;
    use crate::aws::sdk::tests::answering_with;

    #[tokio::test]
    async fn clock_follows_the_answers() {
        for date in ["Tue, 01 Jan 2030 00:00:00 GMT", "Thu, 01 Jan 2015 00:00:00 GMT"] {
            let time = DateTime::from_str(date, Format::HttpDate).unwrap();
            let aws = answering_with(Some(("date", date)), |_| (200, "", "{}".into())).await;
            drop(aws.parameter("p").await);
            let hours = aws.now().as_secs().abs_diff(time.secs().unsigned_abs()) / 3_600;
            assert_eq!(hours, 0, "{date}: {}", aws.now());
        }
        let unknown = answering_with(Some(("date", "soon")), |_| (200, "", "{}".into())).await;
        drop(unknown.parameter("p").await);
        assert_eq!(unknown.clock.ahead.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_second_is_not_corrected() {
        let clock = Clock::default();
        clock.set(Timestamp::from_millis(now().as_millis() - 1_000));
        assert_eq!(clock.ahead.load(Ordering::Relaxed), 0);
    }
}
