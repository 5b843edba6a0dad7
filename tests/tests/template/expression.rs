//! The part of CloudWatch's metric math that the template's alarms use, over one series a metric: numbers, names, `+`, `>`,
//! `==`, `AND`, `IF` and `FILL` with a number. As there, what is calculated from a missing value is missing.

use std::collections::BTreeMap;

/// A value for each period; `None` where there is no data point.
pub(crate) type Series = Vec<Option<f64>>;

/// The value of an expression in each period.
///
/// # Panics
///
/// On anything else than the part that it knows.
pub(crate) fn evaluate(expression: &str, metrics: &BTreeMap<String, Series>) -> Series {
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
            name => self.metrics.get(name).unwrap_or_else(|| panic!("{name} is no metric")).clone(),
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
