//! Evaluates the template's alarms on recorded metrics, as CloudWatch does.
//!
//! Supports the metric math that the alarms use: numbers, names, `+`, `>`, `==`, `AND`, `IF` and `FILL` with a
//! number. A result is missing if an operand is missing.
//!
//! Unlike in CloudWatch, periods do not slide, and older data points do not replace missing ones.

use std::collections::BTreeMap;

use comeback_tests::template;
use serde_json::Value;

/// Values of a metric or expression, one for each period. `None` means that the period has no data point.
pub(crate) type Series = Vec<Option<f64>>;

/// Recorded metrics by name, with one value for each minute.
pub(crate) type Recorded = BTreeMap<&'static str, Series>;

/// For each period, returns true if the alarm is in the state `ALARM` at the period's end.
pub(crate) fn is_raised(alarm: &str, recorded: &Recorded) -> Vec<bool> {
    let alarm = &template()["Resources"][alarm]["Properties"];
    assert_eq!(alarm["TreatMissingData"], "notBreaching");
    let values = values(alarm, recorded);
    let threshold = alarm["Threshold"].as_f64().expect("a number");
    let is_breaching = |value: &Option<f64>| match alarm["ComparisonOperator"].as_str() {
        Some("GreaterThanThreshold") => value.is_some_and(|value| value > threshold),
        Some("GreaterThanOrEqualToThreshold") => value.is_some_and(|value| value >= threshold),
        other => panic!("{other:?} is not known"),
    };
    let breaching: Vec<bool> = values.iter().map(is_breaching).collect();
    let evaluated = whole(&alarm["EvaluationPeriods"]);
    let enough = alarm.get("DatapointsToAlarm").map_or(evaluated, whole);
    let looks = |end: usize| &breaching[(end + 1).saturating_sub(evaluated)..=end];
    (0..breaching.len()).map(|end| looks(end).iter().filter(|it| **it).count() >= enough).collect()
}

/// Length of the alarm's periods, in minutes.
pub(crate) fn period(alarm: &str) -> usize {
    let alarm = &template()["Resources"][alarm]["Properties"];
    let mut queries = alarm["Metrics"].as_array().into_iter().flatten();
    let of_query = queries.find_map(|query| query["MetricStat"].get("Period"));
    whole(of_query.unwrap_or(&alarm["Period"])) / 60
}

fn values(alarm: &Value, recorded: &Recorded) -> Series {
    let Some(queries) = alarm["Metrics"].as_array() else {
        return aggregate(&alarm["MetricName"], &alarm["Period"], &alarm["Statistic"], recorded);
    };
    let metrics = queries.iter().filter_map(|query| {
        let stat = query.get("MetricStat")?;
        assert_eq!(query["ReturnData"], false);
        let series = aggregate(&stat["Metric"]["MetricName"], &stat["Period"], &stat["Stat"], recorded);
        Some((query["Id"].as_str()?.to_owned(), series))
    });
    let metrics = metrics.collect();
    let [returned] = queries.iter().filter(|query| query["ReturnData"] == true).collect::<Vec<_>>()[..]
    else {
        panic!("an alarm has one expression: {alarm}")
    };
    evaluate(returned["Expression"].as_str().expect("text"), &metrics)
}

fn aggregate(name: &Value, period: &Value, statistic: &Value, recorded: &Recorded) -> Series {
    let name = name.as_str().expect("text");
    let minutes = recorded.get(name).unwrap_or_else(|| panic!("{name} was not recorded"));
    let of_period = |minutes: &[Option<f64>]| {
        let values = minutes.iter().flatten().copied();
        match statistic.as_str() {
            Some("Sum") => values.reduce(|sum, value| sum + value),
            Some("Maximum") => values.reduce(f64::max),
            other => panic!("{other:?} is not known"),
        }
    };
    minutes.chunks(whole(period) / 60).map(of_period).collect()
}

fn whole(value: &Value) -> usize {
    value
        .as_u64()
        .and_then(|number| number.try_into().ok())
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Value of a metric-math expression in each period.
fn evaluate(expression: &str, metrics: &BTreeMap<String, Series>) -> Series {
    let length = metrics.values().map(Vec::len).max().unwrap_or_default();
    let mut parser = Parser { tokens: tokens(expression), next: 0, metrics, length };
    let value = parser.conjunction();
    assert_eq!(parser.next, parser.tokens.len(), "{expression} goes on after {:?}", parser.tokens);
    value
}

struct Parser<'m> {
    tokens: Vec<String>,
    next: usize,
    metrics: &'m BTreeMap<String, Series>,
    length: usize,
}

impl Parser<'_> {
    fn conjunction(&mut self) -> Series {
        let mut left = self.comparison();
        while self.takes("AND") {
            let right = self.comparison();
            left = each(&left, &right, |left, right| truth(left != 0.0 && right != 0.0));
        }
        left
    }

    fn comparison(&mut self) -> Series {
        let left = self.sum();
        if self.takes(">") {
            let right = self.sum();
            each(&left, &right, |left, right| truth(left > right))
        } else if self.takes("==") {
            let right = self.sum();
            each(&left, &right, |left, right| truth((left - right).abs() < f64::EPSILON))
        } else {
            left
        }
    }

    fn sum(&mut self) -> Series {
        let mut left = self.term();
        while self.takes("+") {
            let right = self.term();
            left = each(&left, &right, |left, right| left + right);
        }
        left
    }

    fn term(&mut self) -> Series {
        let token = self.tokens[self.next].clone();
        self.next += 1;
        if let Ok(number) = token.parse() {
            return vec![Some(number); self.length];
        }
        match token.as_str() {
            "IF" => {
                let [condition, yes, no] = self.arguments();
                let chosen = condition.iter().zip(yes.iter().zip(no));
                chosen.map(|(is, (yes, no))| if (*is)? == 0.0 { no } else { *yes }).collect()
            }
            "FILL" => {
                let [series, by] = self.arguments();
                series.iter().zip(by).map(|(value, by)| value.or(by)).collect()
            }
            name => self.metrics.get(name).unwrap_or_else(|| panic!("{name} is not a metric")).clone(),
        }
    }

    fn arguments<const N: usize>(&mut self) -> [Series; N] {
        assert!(self.takes("("), "a function has arguments: {:?}", self.tokens);
        let arguments = std::array::from_fn(|index| {
            assert!(index == 0 || self.takes(","), "it takes {N}: {:?}", self.tokens);
            self.conjunction()
        });
        assert!(self.takes(")"), "it takes {N}: {:?}", self.tokens);
        arguments
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_next = self.tokens.get(self.next).is_some_and(|next| next == token);
        self.next += usize::from(is_next);
        is_next
    }
}

fn each(left: &[Option<f64>], right: &[Option<f64>], of: impl Fn(f64, f64) -> f64) -> Series {
    left.iter().zip(right).map(|(left, right)| Some(of((*left)?, (*right)?))).collect()
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace(',', " , ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn metric_math_as_the_template_uses_it() {
    let metrics = BTreeMap::from([
        ("a".to_owned(), vec![Some(2.0), Some(0.0), None]),
        ("b".to_owned(), vec![Some(1.0), None, Some(3.0)]),
    ]);
    for (expression, expected) in [
        ("a + b", vec![Some(3.0), None, None]),
        ("FILL(a, 7) + 1", vec![Some(3.0), Some(1.0), Some(8.0)]),
        ("a > 1", vec![Some(1.0), Some(0.0), None]),
        ("IF(FILL(a, 0) == 0 AND FILL(b, 0) > 0, 5, 6)", vec![Some(6.0), Some(6.0), Some(5.0)]),
        ("IF(a > 0, 1, b)", vec![Some(1.0), None, None]),
    ] {
        assert_eq!(evaluate(expression, &metrics), expected, "{expression}");
    }
}
