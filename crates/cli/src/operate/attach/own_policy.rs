//! A function's own policy: its entry of `POLICIES`.

use std::collections::BTreeMap;

use clap::Args;
use comeback_engine::{
    FunctionArn, Policies, policies_named, policy_about, policy_pattern, qualifier_after, without_policies,
};

use crate::account::Failure;
use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::change::{AttachPlan, Change, PolicyEdit};
use crate::operate::attach::handler_setting::{
    ENVIRONMENT_BYTES, PARAMETER_BYTES, POLICIES, TARGET_FUNCTIONS, environment_bytes, list_with,
};
use crate::operate::attach::kept;
use crate::operate::attach::leaving::Leaving;

/// What an entry of `POLICIES` may set. The handler's own reader reads and refuses the values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "A policy of its own, which replaces the function's earlier one")]
pub(crate) struct OwnPolicy {
    /// MAX_AGE: no retry later than this after the first failure; 60s to 14d
    #[arg(long, value_name = "TIME", value_parser = word)]
    max_age: Option<String>,
    /// MAX_RETRIES: retries of one chain at most; 0 to 10000
    #[arg(long, value_name = "N", value_parser = word)]
    max_retries: Option<String>,
    /// BASE_BACKOFF: ceiling of the first backoff; 1s to MAX_BACKOFF
    #[arg(long, value_name = "TIME", value_parser = word)]
    base_backoff: Option<String>,
    /// MAX_BACKOFF: cap of every backoff; 1s to 43170s
    #[arg(long, value_name = "TIME", value_parser = word)]
    max_backoff: Option<String>,
    /// BACKOFFS: ceilings such as 20s,5m,30m,2h, the last repeated, instead of --base-backoff and --max-backoff
    #[arg(long, value_name = "TIMES", value_parser = word)]
    backoffs: Option<String>,
    /// JITTER: full, equal, decorrelated or none
    #[arg(long, value_name = "NAME", value_parser = word)]
    jitter: Option<String>,
    /// ENVELOPE: wrap or inline
    #[arg(long, value_name = "STYLE", value_parser = word)]
    envelope: Option<String>,
    /// NON_RETRYABLE_ERRORS: globs of the errorTypes that are dead-lettered at once, comma-separated
    #[arg(long, value_name = "GLOBS", value_parser = word)]
    non_retryable_errors: Option<String>,
    /// DIRECTIVES: on or off, whether the function's own RetryAfter and NonRetryable are obeyed
    #[arg(long, value_name = "ON|OFF", value_parser = word)]
    directives: Option<String>,
}

/// An entry of `POLICIES` cannot hold more.
fn word(text: &str) -> Result<String, String> {
    if text.contains(|c: char| c.is_whitespace() || c == ';') {
        return Err("must not have spaces or semicolons".into());
    }
    Ok(text.to_owned())
}

impl OwnPolicy {
    /// The settings as an entry has them; `None` if none is given.
    pub(crate) fn settings(&self) -> Option<String> {
        let given = [
            ("MAX_AGE", &self.max_age),
            ("MAX_RETRIES", &self.max_retries),
            ("BASE_BACKOFF", &self.base_backoff),
            ("MAX_BACKOFF", &self.max_backoff),
            ("BACKOFFS", &self.backoffs),
            ("JITTER", &self.jitter),
            ("ENVELOPE", &self.envelope),
            ("NON_RETRYABLE_ERRORS", &self.non_retryable_errors),
            ("DIRECTIVES", &self.directives),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let given = given.collect::<Vec<_>>().join(" ");
        (!given.is_empty()).then_some(given)
    }
}

impl Attachment {
    /// A bare name is short, and means a function of the handler's account and region.
    fn name_in_policies(&self) -> String {
        let name = self.target.name.clone();
        let beside_handler = FunctionArn { name, qualifier: None, ..self.deployment.handler_arn.clone() };
        if beside_handler.to_string() == self.target.arn {
            beside_handler.name
        } else {
            self.target.arn.clone()
        }
    }

    /// How the entry of the named qualifier names it.
    fn pattern_in_policies(&self) -> String {
        self.target.qualifier.iter().fold(self.name_in_policies(), |name, it| name + ":" + it)
    }

    fn policies_text(&self) -> &str {
        self.policies.as_deref().unwrap_or(self.deployment.policies_text())
    }

    /// The entry that names exactly the named qualifier, whoever wrote it.
    pub(crate) fn entry(&self) -> Option<&str> {
        let pattern = self.pattern_in_policies();
        entries_of_pattern(self.policies_text(), &pattern).next()
    }

    /// The same, if `attach` wrote it.
    pub(crate) fn own_entry(&self) -> Option<&str> {
        let pattern = self.pattern_in_policies();
        entries_of_pattern(self.policies_text(), &pattern).find(|entry| self.wrote(entry))
    }

    /// Whether `attach` wrote this entry of the function. A function that is gone took along the tags that say so.
    fn wrote(&self, entry: &str) -> bool {
        let qualifier = qualifier_after(policy_pattern(entry), &self.name_in_policies()).flatten();
        let queue = &self.deployment.retry_queue.arn;
        self.is_gone || kept::wrote(&self.target.tags, qualifier, queue, entry)
    }

    /// Plans the function's entry of `POLICIES`. Without settings, an entry that it has stays.
    pub(crate) fn set_policy(&self, settings: Option<&str>, plan: &mut AttachPlan) -> Result<(), Failure> {
        let Some(settings) = settings else { return Ok(()) };
        let place = self.place.editable(&self.deployment);
        let (Some(place), Some(text)) = (place, &self.policies) else { return Err(self.only_by_template()) };
        let entry = format!("{} {settings}", self.pattern_in_policies());
        let arn = self.target.invoked_arn();
        let counts = |text: &str| {
            policy_about(text, &arn).is_some_and(|it| it.split_whitespace().eq(entry.split_whitespace()))
        };
        if counts(text) {
            return Ok(());
        }
        let from: Vec<String> = self.own_entry().map(ToOwned::to_owned).into_iter().collect();
        // Without the function's own entry, one that somebody else wrote may say just this.
        let is_there = counts(&without_policies(text, &from));
        if !is_there {
            self.keep_as_written(&entry, plan);
        }
        let edit = PolicyEdit { place, from, to: (!is_there).then_some(entry) };
        let edited = edit.of(text, &arn);
        let after = self.policies_after(&edited)?;
        if let Ok(before) = self.deployment.policies() {
            self.say_what_is_given_up(&before, &after, plan);
        }
        self.say_what_is_shadowed(text, &edited, &edit.from, plan);
        plan.changes.push(Change::Policy(edit));
        self.check_room(&edited, plan)
    }

    /// Plans the tag by which `detach`, or a later `attach`, knows the entry. It comes before the entry, so that a run that is
    /// interrupted leaves none that nobody knows.
    fn keep_as_written(&self, entry: &str, plan: &mut AttachPlan) {
        let key = kept::policies_key(self.target.qualifier.as_deref());
        let (before, queue) = (self.target.tags.get(&key), &self.deployment.retry_queue.arn);
        let tag = (key.clone(), kept::policies_with(before, queue, entry));
        // `detach` needs another tag for its time.
        if before.is_some() || self.room_for_tags(plan) > 1 && kept::fits(&tag) {
            plan.changes.push(Change::Keep(vec![tag]));
        } else {
            plan.notes
                .push(format!("{key} does not fit in a tag of the function: detach will leave its policy"));
        }
    }

    /// Says which other entries of the function no longer count, because the new one stands before them.
    fn say_what_is_shadowed(&self, text: &str, edited: &str, from: &[String], plan: &mut AttachPlan) {
        let name = self.name_in_policies();
        for entry in policies_named(text, &name).filter(|entry| !from.iter().any(|it| it == entry)) {
            let qualifier = qualifier_after(policy_pattern(entry), &name).flatten();
            let arn = format!("{}:{}", self.target.arn, qualifier.unwrap_or("$LATEST"));
            let counts = |text| policy_about(text, &arn) == Some(entry);
            if counts(text) && !counts(edited) {
                plan.notes
                    .push(format!("the policy {entry:?} no longer counts: the new one stands before it"));
            }
        }
    }

    /// Fails if the handler would refuse the policies.
    fn policies_after(&self, edited: &str) -> Result<Policies, Failure> {
        self.deployment.policies_with(edited).map_err(|refused| {
            let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
            Failure::Refused(format!(
                "the handler would not start, so nothing is changed: {}",
                refused.join("; ")
            ))
        })
    }

    /// Fails if the handler has no room for the policies after the plan's changes.
    fn check_room(&self, edited: &str, plan: &AttachPlan) -> Result<(), Failure> {
        let environment = environment_bytes(&self.variables_after(&plan.changes));
        if edited.len() <= PARAMETER_BYTES && environment <= ENVIRONMENT_BYTES {
            return Ok(());
        }
        Err(Failure::Undone(format!(
            "the handler has no room for this policy: POLICIES would have {} bytes of {PARAMETER_BYTES}, its environment \
             {environment} of {ENVIRONMENT_BYTES}; let one entry match several functions, such as shop-*",
            edited.len()
        )))
    }

    /// Says how much of Lambda's limit the plan leaves, if it uses any of it up.
    pub(crate) fn say_room_left(&self, plan: &mut AttachPlan) {
        let after = self.variables_after(&plan.changes);
        if after != self.deployment.variables {
            let left = ENVIRONMENT_BYTES.saturating_sub(environment_bytes(&after));
            plan.notes.push(format!(
                "with this, {left} of the {ENVIRONMENT_BYTES} bytes that Lambda allows for the handler's variables are left"
            ));
        }
    }

    /// The handler's variables after the changes that attach the function.
    pub(crate) fn variables_after(&self, changes: &[Change]) -> BTreeMap<String, String> {
        let mut variables = self.deployment.variables.clone();
        for change in changes {
            let (setting, value) = match change {
                Change::List(..) => {
                    (TARGET_FUNCTIONS, list_with(self.deployment.allow_list(), &self.target.arn))
                }
                Change::Policy(edit) => {
                    let text = self.policies.as_deref().unwrap_or_default();
                    (POLICIES, edit.of(text, &self.target.invoked_arn()))
                }
                _ => continue,
            };
            variables.insert(setting.variable.into(), value);
        }
        variables
    }

    fn only_by_template(&self) -> Failure {
        let stack = self.deployment.stack.as_deref().unwrap_or_default();
        Failure::Undone(format!(
            "stack {stack} has no parameter FunctionPolicies, so only its template can give {} a policy of its own. In a CDK \
             app, write `retries.attach(fn, {{ policy: {{ … }} }})` and deploy it; deploy any other stack from the template of \
             this version, and repeat this command",
            self.target.name
        ))
    }

    /// Plans to take away the entries that `attach` wrote for this function, whatever their qualifier. Others stay.
    pub(crate) fn take_policy_away(&self, plan: &mut AttachPlan) {
        let place = self.place.editable(&self.deployment);
        let (Some(place), Some(text)) = (place, &self.policies) else { return };
        let name = self.name_in_policies();
        let mut from: Vec<String> = Vec::new();
        for entry in policies_named(text, &name) {
            if !self.wrote(entry) {
                plan.notes.push(stays(entry));
            } else if !from.iter().any(|own| own == entry) {
                from.push(entry.to_owned());
            }
        }
        if !from.is_empty() {
            plan.changes.push(Change::Policy(PolicyEdit { place, from, to: None }));
        }
    }

    /// Plans to forget what this tag keeps of the deployment's policies.
    pub(crate) fn forget_policies(&self, key: String, plan: &mut AttachPlan) {
        let Some(before) = self.target.tags.get(&key) else { return };
        match kept::policies_without(before, &self.deployment.retry_queue.arn) {
            None => self.forget([key], plan),
            Some(others) if others != *before => plan.changes.push(Change::Keep(vec![(key, others)])),
            Some(_) => {}
        }
    }

    /// Whether events of this qualifier follow the own entry of the named one.
    pub(crate) fn follows_own_entry(&self, qualifier: Option<&str>) -> bool {
        let (Some(text), Some(own)) = (&self.policies, self.own_entry()) else { return false };
        let arn = format!("{}:{}", self.target.arn, qualifier.unwrap_or("$LATEST"));
        policy_about(text, &arn) == Some(own)
    }

    /// Plans to take away the entry of the named qualifier alone, because others stay attached. It stays while events follow
    /// it: those of the qualifier that wait, and those of another one that has no entry of its own.
    pub(crate) fn take_qualifiers_policy_away(&self, leaving: &Leaving, plan: &mut AttachPlan) {
        let place = self.place.editable(&self.deployment);
        let (Some(place), Some(text)) = (place, &self.policies) else { return };
        let Some(entry) = self.own_entry() else {
            plan.notes.extend(self.entry().map(stays));
            return;
        };
        let edited = without_policies(text, &[entry]);
        let follower = self.other_qualifiers().find(|qualifier| self.follows_own_entry(*qualifier));
        if let Some(other) = follower {
            let other = self.target.named(other);
            plan.notes.push(format!("the policy {entry:?} stays, because {other} has none of its own"));
            return;
        }
        if let Some(waiting) = leaving.waiting.as_ref().filter(|_| !leaving.at_once) {
            plan.left =
                Some(format!("the policy {entry:?} stays, for events that may still wait: {waiting}"));
            plan.price_of_now = Some("events that still wait lose this policy".into());
            return;
        }
        let policies = [self.deployment.policies_with(text), self.deployment.policies_with(&edited)];
        if let [Ok(before), Ok(after)] = &policies {
            self.say_what_is_given_up(before, after, plan);
        }
        let from = vec![entry.to_owned()];
        plan.changes.push(Change::Policy(PolicyEdit { place, from, to: None }));
        self.forget_policies(kept::policies_key(self.target.qualifier.as_deref()), plan);
    }
}

fn stays(entry: &str) -> String {
    format!(
        "the policy {entry:?} stays, because no tag of the function says that attach wrote it: remove it by hand if nothing \
         needs it"
    )
}

fn entries_of_pattern<'t>(text: &'t str, pattern: &str) -> impl Iterator<Item = &'t str> {
    policies_named(text, pattern).filter(move |entry| policy_pattern(entry) == pattern)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::operate::attach::attachment::Place;
    use crate::operate::attach::leaving::Leaving;
    use crate::operate::attach::model::{all, attachment, left, set_own_policies, set_policies};

    /// `orders` is attached, beside these policies, which others wrote.
    fn attached(text: &str) -> Attachment {
        let mut it = all(&attachment(), &attachment().attach(false, None).unwrap());
        set_policies(&mut it, text.to_owned());
        it
    }

    /// The same, but `attach` wrote those of `orders`.
    fn attached_with_its_own(text: &str) -> Attachment {
        let mut it = attached("");
        set_own_policies(&mut it, text);
        it
    }

    fn lines(plan: &AttachPlan) -> Vec<String> {
        let text = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let differences =
            plan.differences().filter(|it| ["FunctionPolicies", "POLICIES"].contains(&&*it.setting));
        differences.map(|it| format!("{} | {} → {}", it.resource, text(it.from), text(it.to))).collect()
    }

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        policy: OwnPolicy,
    }

    fn read(flags: &str) -> Result<Option<String>, String> {
        let words = std::iter::once("attach").chain(flags.split('|').filter(|word| !word.is_empty()));
        Flags::try_parse_from(words).map(|flags| flags.policy.settings()).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_the_settings_of_an_entry() {
        assert_eq!(read(""), Ok(None));
        let given = "--jitter|none|--max-age=2h|--backoffs|20s,5m|--non-retryable-errors=|--directives=off";
        let expected = "MAX_AGE=2h BACKOFFS=20s,5m JITTER=none NON_RETRYABLE_ERRORS= DIRECTIVES=off";
        assert_eq!(read(given), Ok(Some(expected.to_owned())));
        for more in ["--max-age|2h; * MAX_AGE=1m", "--non-retryable-errors|A, B"] {
            assert!(read(more).is_err_and(|error| error.contains("spaces or semicolons")), "{more}");
        }
    }

    #[test]
    fn a_policy_is_an_entry_of_its_own_before_the_first_that_matches() {
        let others = "export MAX_AGE=14d; o* MAX_AGE=12h";
        let before = attached(others);
        let plan = before.attach(false, Some("MAX_AGE=2h MAX_RETRIES=3")).unwrap();
        assert_eq!(lines(&plan), ["stack comeback | - → orders MAX_AGE=2h MAX_RETRIES=3"]);
        let after = all(&before, &plan);
        let text = "export MAX_AGE=14d; orders MAX_AGE=2h MAX_RETRIES=3; o* MAX_AGE=12h";
        assert_eq!(after.policies.as_deref(), Some(text));
        for settings in [None, Some("MAX_AGE=2h MAX_RETRIES=3")] {
            assert_eq!(after.attach(false, settings).unwrap().changes, [], "{settings:?}");
        }
        let plan = after.attach(false, Some("JITTER=none")).unwrap();
        let replaced = "stack comeback | orders MAX_AGE=2h MAX_RETRIES=3 → orders JITTER=none";
        assert_eq!(lines(&plan), [replaced]);
        // Its alias has another, and all of them go with the function.
        let mut live = all(&after, &plan);
        live.target.qualifier = Some("live".into());
        let both = all(&live, &live.attach(false, Some("MAX_AGE=1h")).unwrap());
        let text = "export MAX_AGE=14d; orders:live MAX_AGE=1h; orders JITTER=none; o* MAX_AGE=12h";
        assert_eq!(both.policies.as_deref(), Some(text));
        let detached = Attachment { is_gone: true, ..both };
        let plan = detached.detach(&left()).unwrap();
        assert_eq!(lines(&plan), ["stack comeback | orders:live MAX_AGE=1h; orders JITTER=none → -"]);
        assert_eq!(all(&detached, &plan).policies.as_deref(), Some(others));
    }

    #[test]
    fn an_entry_that_a_new_one_shadows_is_named() {
        let notes = |text: &str| {
            let plan = attached(text).attach(false, Some("JITTER=none")).unwrap();
            plan.notes.into_iter().filter(|note| note.contains("no longer counts")).collect::<Vec<_>>()
        };
        let shadowed = ["orders:$LATEST MAX_AGE=2d", "orders:live MAX_AGE=3d"];
        let said = shadowed
            .map(|entry| format!("the policy {entry:?} no longer counts: the new one stands before it"));
        assert_eq!(notes(&shadowed.join("; ")), said);
        let said = ["the policy \"orders MAX_AGE=2d\" no longer counts: the new one stands before it"];
        assert_eq!(notes("orders:live MAX_AGE=3d; orders MAX_AGE=2d; orders:dev MAX_AGE=4d"), said);
    }

    #[test]
    fn an_entry_that_attach_did_not_write_is_never_touched() {
        let by_hand = "orders MAX_AGE=2d; * JITTER=none";
        let before = attached(by_hand);
        assert_eq!(before.attach(false, Some("MAX_AGE=2d")).unwrap().changes, [], "it says the same");
        let mut after = before.clone();
        after = all(&after, &after.attach(false, Some("MAX_AGE=1h")).unwrap());
        after = all(&after, &after.attach(false, Some("MAX_AGE=2d")).unwrap());
        assert_eq!(after.policies.as_deref(), Some(by_hand), "what somebody wrote says it already");
        for settings in ["MAX_AGE=2h", "MAX_AGE=3h"] {
            let plan = after.attach(false, Some(settings)).unwrap();
            assert!(matches!(plan.changes[..], [Change::Keep(_), Change::Policy(_)]), "{:?}", plan.changes);
            // Between the two, a run may be cut off.
            after.target.tags = all(&after, &plan).target.tags;
            after = all(&after, &after.attach(false, Some(settings)).unwrap());
            assert_eq!(after.policies.as_deref(), Some(&*format!("orders {settings}; {by_hand}")));
        }
        let first = after.detach(&left()).unwrap();
        let later = left().now.saturating_add(std::time::Duration::from_secs(3_600));
        let last = all(&after, &first).detach(&Leaving { now: later, ..left() }).unwrap();
        assert!(
            last.notes.iter().any(|it| it.starts_with("the policy \"orders MAX_AGE=2d\" stays, because"))
        );
        let detached = all(&all(&after, &first), &last);
        assert_eq!(detached.policies.as_deref(), Some(by_hand));
        assert_eq!(detached.target.tags, [].into(), "nothing is left of it");
    }

    #[test]
    fn of_two_entries_that_say_the_same_only_its_own_goes() {
        let by_hand = "* JITTER=none; orders MAX_AGE=2h";
        let before = attached(by_hand);
        let after = all(&before, &before.attach(false, Some("MAX_AGE=2h")).unwrap());
        assert_eq!(after.policies.as_deref(), Some(&*format!("orders MAX_AGE=2h; {by_hand}")));
        let gone = all(&after, &after.detach(&Leaving { at_once: true, ..left() }).unwrap());
        assert_eq!(gone.policies.as_deref(), Some(by_hand));
    }

    #[test]
    fn an_entry_of_another_deployment_stays_attachs_own() {
        let here = attached_with_its_own("orders MAX_AGE=2h");
        let mut there = here.clone();
        there.deployment.retry_queue.arn += "-2";
        assert!(there.own_entry().is_none(), "here, somebody else may have written the same");
        let set = all(&there, &there.attach(false, Some("MAX_AGE=3h")).unwrap());
        let mut plan = there.no_changes();
        set.forget_policies(kept::policies_key(None), &mut plan);
        let left = Attachment { target: all(&set, &plan).target, ..here };
        assert_eq!(left.own_entry(), Some("orders MAX_AGE=2h"));
    }

    #[test]
    fn an_entry_whose_tag_does_not_fit_is_said_to_stay() {
        let mut full = attached("");
        let there = full.target.tags.len();
        full.target.tags.extend((there..kept::TAGS - 1).map(|n| (format!("tag-{n}"), String::new())));
        let plan = full.attach(false, Some("MAX_AGE=2h")).unwrap();
        assert!(matches!(plan.changes[..], [Change::Policy(_)]), "{:?}", plan.changes);
        assert!(plan.notes.iter().any(|it| it.ends_with("detach will leave its policy")), "{:?}", plan.notes);
    }

    #[test]
    fn a_policy_stays_while_events_wait() {
        let before = attached_with_its_own("orders MAX_AGE=2h; * JITTER=none");
        let first = before.detach(&left()).unwrap();
        assert_eq!(lines(&first), [""; 0]);
        let later = left().now.saturating_add(std::time::Duration::from_secs(3_600));
        let last = all(&before, &first).detach(&Leaving { now: later, ..left() }).unwrap();
        assert_eq!(lines(&last), ["stack comeback | orders MAX_AGE=2h → -"]);
    }

    #[test]
    fn one_qualifiers_policy_goes_when_nothing_follows_it() {
        let mut both = attached_with_its_own("orders MAX_AGE=2h; orders:live MAX_AGE=3h; * JITTER=none");
        let settings = both.target.settings();
        both.target.invoke_settings.insert(Some("live".into()), settings);
        let detached = |it: &Attachment, leaving: &Leaving| {
            let plan = it.detach(leaving).unwrap();
            (lines(&plan), plan.notes.join("; "), plan.left)
        };
        // In the text, the entry of orders counts for its alias too.
        let (changes, notes, _) = detached(&both, &left());
        assert_eq!(changes, [""; 0]);
        assert!(notes.contains("\"orders MAX_AGE=2h\" stays, because orders:live has none"), "{notes}");
        set_policies(&mut both, "orders:live MAX_AGE=3h; orders MAX_AGE=2h; * JITTER=none".into());
        let (changes, ..) = detached(&both, &left());
        assert_eq!(changes, ["stack comeback | orders MAX_AGE=2h → -"]);

        both.target.qualifier = Some("live".into());
        let waiting = Leaving { waiting: Some("2 of its events wait".into()), ..left() };
        let (changes, _, later) = detached(&both, &waiting);
        let said = "the policy \"orders:live MAX_AGE=3h\" stays, for events that may still wait: 2 of its events wait";
        assert_eq!((changes, later.as_deref()), (vec![], Some(said)));
        let (changes, notes, later) = detached(&both, &Leaving { at_once: true, ..waiting });
        assert_eq!(
            (&changes[..], later),
            (&["stack comeback | orders:live MAX_AGE=3h → -".to_owned()][..], None)
        );
        assert!(
            notes.contains("each waiting event of orders:live that is older than MAX_AGE (3h → 2h; "),
            "{notes}"
        );
        let after = all(&both, &both.detach(&left()).unwrap());
        assert_eq!(after.policies.as_deref(), Some("orders MAX_AGE=2h; * JITTER=none"));
        assert_eq!(after.detach(&left()).unwrap().changes, []);
    }

    #[test]
    fn a_handler_without_a_stack_has_it_in_its_variable() {
        let mut it = Attachment { place: Place::Environment, ..attachment() };
        it.target.arn = it.target.arn.replace("123456789012", "999999999999");
        let plan = it.attach(false, Some("JITTER=none")).unwrap();
        let entry = format!("{} JITTER=none", it.target.arn);
        assert_eq!(lines(&plan), [format!("function retry-handler | - → {entry}")]);
        let is_last = matches!(plan.changes.last(), Some(Change::Settings(_)));
        assert!(is_last, "it is there before the first failure");
    }

    #[test]
    fn what_the_handler_would_refuse_is_refused_before_anything_is_changed() {
        let refused =
            |it: Attachment, settings: &str| it.attach(false, Some(settings)).unwrap_err().to_string();
        let base = attached("");
        let said = refused(base.clone(), "MAX_BACKOFF=0s");
        assert!(
            said.starts_with("the handler would not start, so nothing is changed: POLICIES entry"),
            "{said}"
        );
        // Alone it is fine.
        let mut slow = attached("");
        slow.deployment.variables.insert("BASE_BACKOFF".into(), "600".into());
        let said = refused(slow, "MAX_BACKOFF=60");
        assert!(said.contains("BASE_BACKOFF is 600 s; it must be 1 s to MAX_BACKOFF (60 s)"), "{said}");
        let mut full = base.clone();
        full.deployment.variables.insert("FILL".into(), "x".repeat(ENVIRONMENT_BYTES - 300));
        let said = refused(full, &format!("NON_RETRYABLE_ERRORS={}", "x".repeat(100)));
        assert!(
            said.starts_with("the handler has no room for this policy: POLICIES would have 128 bytes"),
            "{said}"
        );
        let old = Attachment { policies: None, ..base };
        assert!(old.attach(false, None).is_ok());
        assert!(refused(old, "JITTER=none").starts_with("stack comeback has no parameter FunctionPolicies"));
    }

    #[test]
    fn a_shorter_age_and_the_room_left_are_said() {
        let notes = |it: &Attachment, settings| it.attach(false, Some(settings)).unwrap().notes;
        let it = attached("* MAX_AGE=3d");
        let [age, room] = &notes(&it, "MAX_AGE=2h")[..] else { panic!("two notes") };
        assert!(age.contains("each waiting event of orders that is older than MAX_AGE (3d → 2h; "), "{age}");
        let after = all(&it, &it.attach(false, Some("MAX_AGE=2h")).unwrap());
        let left = ENVIRONMENT_BYTES - environment_bytes(&after.deployment.variables);
        let expected = format!(
            "with this, {left} of the 4096 bytes that Lambda allows for the handler's variables are left"
        );
        assert_eq!(room, &expected);
        assert_eq!(notes(&it, "MAX_AGE=4d").len(), 1);
        assert_eq!(notes(&attachment(), "MAX_AGE=2h").len(), 1, "nothing of it can wait");
        let plan = attachment().attach(false, None).unwrap();
        let after = all(&attachment(), &plan);
        let left = ENVIRONMENT_BYTES - environment_bytes(&after.deployment.variables);
        assert!(plan.notes[0].starts_with(&format!("with this, {left} of ")), "the allow-list grows");
    }
}
