//! Tests of the first page, with the demonstration's account.

use super::demo::{page, stopped};
use super::denied::{denied, text};
use super::locally;

/// The cells of a function's row on the first page, without markup.
fn row(page: &str, function: &str) -> Vec<String> {
    let begin = format!("<tr><th scope=\"row\"><a href=\"/function?name={function}\">");
    let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{function}: {page}"));
    let row = rest.split("</tr>").next().unwrap_or_default();
    let text = |cell: &str| {
        let mut text = String::new();
        let mut is_markup = true;
        for character in cell.chars() {
            match character {
                '<' => is_markup = true,
                '>' => is_markup = false,
                _ if !is_markup => text.push(character),
                _ => {}
            }
        }
        text.trim().to_owned()
    };
    row.split("<td").skip(1).map(text).collect()
}

#[tokio::test]
async fn worst_function_is_named_first_with_its_state() {
    locally(async {
        let setting = stopped().await;
        let page = page(&setting, "/").await;
        let orders = row(&page, "orders");
        assert_eq!((&*orders[0], &*orders[5]), ("failing", "ConnectTimeout"));
        assert!(orders[1].ends_with("m ago") || orders[1].ends_with("s ago"), "{orders:?}");
        let waiting: u64 = orders[2].replace(',', "").parse().unwrap();
        assert!(waiting > 50, "{orders:?}");
        assert!(orders[6].contains(" failures, ") && orders[7].starts_with("within "), "{orders:?}");
        assert_eq!(orders[8], "Retry nowPause");
        assert_eq!(row(&page, "thumbnails")[0], "throttled");
        let emails = row(&page, "emails");
        assert_eq!((&*emails[0], &*emails[2]), ("dead-lettering", "0"), "its errors are never retried");
        assert_ne!(emails[4], "0", "they were dead-lettered");
        assert_eq!(emails[8], "PauseDead-letters");
        assert!(page.contains("<a class=\"button\" href=\"/dead?target=emails\""), "{page}");
        let place = |function: &str| page.find(&format!("name={function}\">")).unwrap();
        assert!(place("orders") < place("emails") && place("emails") < place("thumbnails"));
        let changes = [
            ("Waiting", " in the last hour"),
            ("Due", " an hour ago"),
            ("Dead-letters", " in the last hour"),
        ];
        for (title, change) in changes {
            let (_, tile) = page.split_once(&format!("<dt>{title}</dt>")).unwrap();
            let (tile, _) = tile.split_once("</div>").unwrap();
            assert!(tile.contains(&format!("{change}</span>")), "{tile}");
        }
    })
    .await;
}

#[tokio::test]
async fn function_without_a_line_in_the_log_is_quiet() {
    locally(async {
        let here = denied(&[], Vec::new(), false).await;
        let page = text(&here, "/").await;
        assert_eq!(row(&page, "orders"), ["quiet", "", "0", "0", "0", "", "", "", "Pause"]);
        assert!(page.contains("also has the pattern"), "{page}");
        let resume =
            "<a class=\"button\" href=\"/resume?plan=yes&#38;function=shop%2Dpaused\">Resume shop-paused</a>";
        assert!(page.contains(resume), "its function has no row: {page}");
        let here = denied(&[], Vec::new(), true).await;
        assert_eq!(row(&text(&here, "/").await, "orders").len(), 8, "a read-only console has no buttons");
    })
    .await;
}

#[tokio::test]
async fn charts_come_back_after_a_failed_read() {
    locally(async {
        for (missing, has_charts) in [(&["cloudwatch:GetMetricData"][..], false), (&[], true)] {
            let page = text(&denied(missing, Vec::new(), false).await, "/").await;
            assert!(page.contains("<div id=\"history\" data-refresh>"), "the script refreshes it: {page}");
            assert_eq!(page.contains("<h2>The last hours</h2>"), has_charts, "{page}");
            assert!(!page.contains("<p class=\"line\"></p>"), "{page}");
        }
    })
    .await;
}

#[tokio::test]
async fn counts_stand_in_the_navigation_and_the_title() {
    locally(async {
        let here = denied(&[], Vec::new(), false).await;
        let doctor = text(&here, "/doctor").await;
        assert!(!doctor.contains("class=\"count\""), "nothing was read yet: {doctor}");
        text(&here, "/").await;
        let dead = text(&here, "/dead").await;
        assert!(dead.contains("<title>(3) Dead-letters · Comeback</title>"), "{dead}");
        assert!(dead.contains("Waiting <span class=\"count\">3</span></a>"), "{dead}");
    })
    .await;
}
