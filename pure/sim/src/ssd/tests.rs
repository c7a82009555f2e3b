//! The times of a flash disk: alone, in parallel, and once it has to collect garbage.

use super::*;

fn preset() -> SsdOptions {
    SsdOptions::preset("nvme-tlc-500gb").unwrap()
}

fn took(ssd: &mut Ssd, now: Instant, write: bool, offset: u64, length: u32) -> Span {
    let mut started = Vec::new();
    ssd.push(now, MemberIo { tag: 0, write, offset, length }, &mut started);
    ssd.finish();
    started[0].ends.since(now)
}

#[test]
fn a_write_is_answered_from_the_cache_and_a_read_takes_a_page_and_its_way() {
    let mut ssd = Ssd::new(&preset());
    let now = Instant::ORIGIN;
    assert!(took(&mut ssd, now, true, 0, 4_096) < Span::from_micros(25));
    let read = took(&mut ssd, now, false, 1 << 30, 4_096);
    assert!((Span::from_micros(64)..Span::from_micros(70)).contains(&read), "{read}");
}

#[test]
fn a_large_read_is_spread_over_all_dies() {
    let mut ssd = Ssd::new(&preset());
    let large = took(&mut ssd, Instant::ORIGIN, false, 0, 256 << 10);
    assert!(large < Span::from_micros(150), "16 pages of 16 dies in {large}");
}

#[test]
fn a_read_waits_for_the_program_that_its_die_is_in_and_for_no_more() {
    let mut ssd = Ssd::new(&preset());
    took(&mut ssd, Instant::ORIGIN, true, 0, 16 << 20);
    let later = Instant::from_nanos(2_000_000);
    let longest = (0..16).map(|die| took(&mut ssd, later, false, die * (16 << 10), 4_096)).max().unwrap();
    assert!((Span::from_micros(500)..Span::from_micros(950)).contains(&longest), "{longest}");
}

#[test]
fn options_that_make_no_flash_disk_are_refused() {
    assert_eq!(preset().check(), Ok(()));
    let text = |options: SsdOptions| options.check().unwrap_err().to_string();
    assert!(text(SsdOptions { spare: 0, ..preset() }).contains("1 % of them spare"));
    assert!(
        text(SsdOptions { block_size: NonZeroU32::new(5).unwrap(), ..preset() }).contains("not a multiple")
    );
    assert!(text(SsdOptions { write_cache: 1, ..preset() }).contains("at least 524288"));
    assert!(text(SsdOptions { link_rate: 0, ..preset() }).contains("0 bytes a second"));
    assert!(SsdOptions::preset("floppy").is_none());
}
