//! A store that this process has open. Alone in its file: a process that another test starts
//! inherits the lock for a moment, until it becomes the command.

mod common;

use common::Store;
use thermocline::Db;

#[test]
fn a_store_that_is_open_elsewhere_is_refused() {
    let store = Store::filled(1, 1);
    let db = Db::open(store.options()).expect("opens");
    store
        .run("get", &["key0000"])
        .fails(3, &["open elsewhere", "fast"]);
    db.close().expect("closes");
    drop(db);
    store.run("get", &["key0000"]).ok();
}
