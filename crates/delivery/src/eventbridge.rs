//! `PutEvents`.
