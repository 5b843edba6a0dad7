//! The operator's half of Comeback: what the `comeback` command does with a deployment.
