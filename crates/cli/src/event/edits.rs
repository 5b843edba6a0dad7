use std::ops::Range;

use serde_json::value::RawValue;

/// Replacements of parts of a text.
pub(super) struct Edits<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Replaces a value of the text, if there is a new one.
    pub(super) fn replace(&mut self, value: &'a RawValue, new: impl FnOnce(&'a RawValue) -> Option<String>) {
        // The value borrows from the text, so its address gives its place.
        let start = value.get().as_ptr() as usize - self.text.as_ptr() as usize;
        if let Some(new) = new(value) {
            self.edits.push((start..start + value.get().len(), new));
        }
    }

    pub(super) fn apply(mut self) -> String {
        self.edits.sort_by_key(|(range, _)| range.start);
        let mut result = String::with_capacity(self.text.len());
        let mut done = 0;
        for (range, new) in self.edits {
            result.push_str(&self.text[done..range.start]);
            result.push_str(&new);
            done = range.end;
        }
        result + &self.text[done..]
    }
}
