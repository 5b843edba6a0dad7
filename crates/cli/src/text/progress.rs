use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, until it is dropped; hidden where that is no terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// `figures` stands to the right of the bar, in indicatif's template language.
    pub(crate) fn new(length: u64, figures: &str) -> Self {
        let style = ProgressStyle::with_template(&format!("{{wide_bar}} {figures}"))
            .expect("BUG: a template that indicatif does not read");
        Self(ProgressBar::new(length).with_style(style))
    }

    /// Of work whose length nobody knows. `figures` stands to the right of a spinner.
    #[cfg(feature = "operate")]
    pub(crate) fn endless(figures: &str) -> Self {
        let style = ProgressStyle::with_template(&format!("{{spinner}} {figures}"))
            .expect("BUG: a template that indicatif does not read");
        Self(ProgressBar::new_spinner().with_style(style))
    }

    pub(crate) fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    pub(crate) fn set(&self, position: u64) {
        self.0.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
