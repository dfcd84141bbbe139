//! What `{:?}` of a handle says: which store, and which number. Programs print their handles in
//! logs and in the messages of `unwrap`. Neither the records of their users belong there, nor all
//! that the store has in memory.

use std::fmt::{Debug, Formatter, Result};
use std::path::Path;

use super::{Db, DbBuilder, Keyspace, Snapshot};
use crate::copies::{Backups, LogReader};
use crate::engine::Engine;
use crate::read::Range;

impl Engine {
    /// The directory that stands for the store in messages.
    fn place(&self) -> &Path {
        &self.fast().options.path
    }
}

impl Debug for Engine {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Engine")
            .field("path", &self.place())
            .finish()
    }
}

impl Debug for Db {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Db")
            .field("path", &self.engine().place())
            .finish()
    }
}

impl Debug for Keyspace {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        // Not its name: that is the user's, as its keys are.
        f.debug_struct("Keyspace")
            .field("path", &self.engine().place())
            .field("number", &self.tree().id)
            .finish()
    }
}

impl Debug for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Snapshot")
            .field("path", &self.default.engine().place())
            .field("seq", &self.seq())
            .finish()
    }
}

impl Debug for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Range")
            .field("path", &self.engine.place())
            .field("seq", &self.seq)
            .finish()
    }
}

impl Debug for LogReader {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("LogReader")
            .field("path", &self.path)
            .finish()
    }
}

impl Debug for Backups {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Backups").field("path", &self.path).finish()
    }
}

impl Debug for DbBuilder {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let paths = self.request().options.tiers.iter().map(|tier| &tier.path);
        f.debug_struct("DbBuilder")
            .field("paths", &paths.collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::executor::Stepped;
    use crate::storage::{Faulty, Medium, Memory};
    use crate::{Backups, Batch, Db, Expect, Options};

    const KEY: &str = "card:4111111111111111";
    const VALUE: &str = "SECRETVALUE";

    /// Whether `text` holds `secret`, as text or as a list of bytes.
    fn tells(text: &str, secret: &str) -> bool {
        let bytes = format!("{:?}", &secret.as_bytes()[..4]);
        text.contains(&secret[..4]) || text.contains(bytes.trim_matches(['[', ']']))
    }

    /// A `Db`, a `Keyspace` and a `Snapshot` printed the whole engine: 2 MB, with keys of records,
    /// of memtables and of tables. A range printed its bounds, a batch and a reader of the log
    /// printed the records in them, and a medium in memory printed all its files.
    #[test]
    fn no_handle_prints_what_users_have_stored() {
        let media: [Arc<dyn Medium>; 2] = [Arc::new(Memory::new()), Arc::new(Faulty::new(1))];
        for medium in media {
            let builder = || {
                let builder = Db::builder(Options::one_tier("/fast"));
                builder.medium(0, Arc::clone(&medium))
            };
            let db = builder()
                .executor(Arc::new(Stepped::new(1)))
                .open()
                .unwrap();
            let side = db.create_keyspace("SECRETVALUE-keyspace").unwrap();
            for keyspace in [&*db, &side] {
                keyspace.put(KEY, VALUE).unwrap();
                db.flush().unwrap();
                keyspace.put(KEY, VALUE).unwrap();
                keyspace.get(KEY).unwrap().unwrap();
            }
            let mut begun = db.range(KEY..);
            begun.next().unwrap().unwrap();
            let mut log = db.log_since(4).unwrap();
            log.next().unwrap().unwrap();
            let mut batch = Batch::new();
            batch.put(KEY, VALUE);
            batch.require(&db, KEY, Expect::Equals(VALUE.into()));
            let home = tempfile::tempdir().unwrap();
            let backups = Backups::open(home.path()).unwrap();
            backups.take(&db).unwrap();
            let logs = medium.log_store("/fast".as_ref(), false).unwrap();
            let tables = medium.table_store("/fast".as_ref(), false).unwrap();
            let table = tables.list().unwrap().pop().unwrap();
            let table = tables.open(&table.name).unwrap();
            let written = logs.create("left").unwrap();
            written.append(KEY.as_bytes()).unwrap();
            let mut writer = tables.create("new", 100).unwrap();
            writer.append(VALUE.as_bytes()).unwrap();
            let printed = [
                ("/fast", format!("{db:?}")),
                ("number: 0", format!("{:?}", &*db)),
                ("number", format!("{:?}", db.create_keyspace("made"))),
                ("seq: 4", format!("{:?}", db.snapshot())),
                ("seq: 4", format!("{begun:?}")),
                ("/fast", format!("{log:?}")),
                ("writes: 1", format!("{batch:?}")),
                ("path", format!("{backups:?}")),
                ("/fast", format!("{:?}", builder())),
                ("", format!("{medium:?}")),
                ("/fast", format!("{logs:?}")),
                ("/fast", format!("{tables:?}")),
                ("/fast", format!("{table:?}")),
                ("", format!("{written:?}")),
                ("", format!("{writer:?}")),
            ];
            for (named, text) in printed {
                assert!(text.contains(named), "{named} is not in {text}");
                assert!(!tells(&text, KEY) && !tells(&text, VALUE), "{text}");
                assert!(text.len() < 300 && !text.contains('\n'), "{text}");
            }
        }
    }
}
