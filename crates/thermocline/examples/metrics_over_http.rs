//! A store's metrics where Prometheus asks for them.
//!
//! `cargo run --example metrics_over_http` asks itself once and ends. With an address it serves
//! until it is stopped: `cargo run --example metrics_over_http 127.0.0.1:9184`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use thermocline::{Db, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let (fast, slow) = (home.path().join("fast"), home.path().join("slow"));
    let db = Db::open(Options::two_tiers(fast, 64 << 20, slow))?;
    db.put("lake/geneva", "310 m")?;
    db.get("lake/geneva")?;

    if let Some(address) = std::env::args().nth(1) {
        let listener = TcpListener::bind(&address)?;
        println!("metrics are at http://{address}/metrics");
        for client in listener.incoming() {
            // One client that goes away does not end the service.
            if let Err(error) = client.and_then(|client| answer(&db, client)) {
                eprintln!("{error}");
            }
        }
        return Ok(());
    }

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let text = std::thread::scope(|scope| {
        let asked = scope.spawn(move || ask(&address.to_string()));
        answer(&db, listener.accept()?.0)?;
        asked.join().expect("a client that does not panic")
    })?;
    let reads = text
        .lines()
        .find(|line| line.starts_with("thermocline_reads_total"));
    println!("{}", reads.ok_or("there is no count of reads")?);
    db.close()?;
    Ok(())
}

/// Answers one request, whatever it asks for.
fn answer(db: &Db, mut client: TcpStream) -> std::io::Result<()> {
    // One that says nothing does not keep the next waiting.
    client.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut request = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut metrics = db.metrics();
    // One by one, for a store with few keyspaces.
    metrics.keyspaces = db.keyspace_metrics();
    let text = metrics.to_prometheus();
    write!(
        client,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )
}

/// What a scraper does.
fn ask(address: &str) -> std::io::Result<String> {
    let mut server = TcpStream::connect(address)?;
    write!(server, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    Ok(answer)
}
