//! Tests of the search in the header, and of the search on the page of waiting events.

use axum::http::StatusCode;

use super::choosing::waits;
use super::denied::denied;
use super::locally;

#[tokio::test]
async fn search_leads_to_what_was_named() {
    locally(async {
        let here = denied(&[], vec![waits("k-1", "Timeout"), waits("k-2", "Fatal")], false).await;
        for (query, place) in [
            ("/search?q=orders", "/function?name=orders"),
            ("/search?q=%20timeout", "/waiting?error=Timeout"),
            ("/search?q=Time*", "/waiting?error=Time%2A"),
            ("/search?q=k-1", "/event?id=k%2D1"),
            ("/search?q=5e2c1a9b", "/event?id=5e2c1a9b"),
            ("/search?q=", "/waiting"),
            ("/waiting?q=orders&error=Fatal&page=3", "/waiting?error=Fatal&function=orders"),
            ("/waiting?q=FATAL", "/waiting?error=Fatal"),
            ("/waiting?q=k-2&function=orders", "/waiting?function=orders&key=k%2D2"),
            ("/waiting?q=r-0", "/event?id=r%2D0"),
        ] {
            let answer = here.response(here.page(query)).await;
            assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{query}");
            assert_eq!(answer.headers()["location"], place, "{query}");
        }
    })
    .await;
}
