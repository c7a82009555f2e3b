//! Claims: a text builds the array that it describes, and the error for any other text names the key.

use super::*;

const FC60: &str = r#"
disks = 6
disk = "cheetah-18lp"
raid = "raid5"
stripe_unit = "16KiB"
size = "20GiB"
nvram = "256MiB"
flush_after = "10s"
read_cache = "64MiB"
prefetch = "320KiB"
overhead = "100us"
ports = 2
port_bandwidth = "100MB/s"
units = 2
layout = "striped"
unit = "64KiB"
"#;

fn parse(text: &str) -> Result<ArraySpec, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
}

fn error(text: &str) -> String {
    parse(text).unwrap().options().unwrap_err().to_string()
}

#[test]
fn what_is_written_is_what_is_built() {
    let options = parse(FC60).unwrap().options().unwrap();
    assert_eq!((options.units.len(), options.size()), (2, 40 << 30));
    assert_eq!(options.layout, Layout::Striped { unit_bytes: 64 * 1024 });
    let port = LinkOptions { bandwidth: Bandwidth::new(100_000_000).unwrap(), overhead: Span::ZERO };
    assert_eq!(options.ports, [port, port]);
    let expected = UnitOptions {
        member: MemberOptions::Disk(DiskOptions::preset("cheetah-18lp").unwrap()),
        members: 6,
        raid: RaidLevel::Raid5,
        stripe_unit: 16 * 1024,
        size: Some(20 << 30),
        cache: CacheOptions {
            nvram: 256 << 20,
            high_water: 0.8,
            low_water: 0.6,
            flush_after: Some(Span::from_secs(10)),
            destages: 24,
            filled: 0.0,
            read_cache: 64 << 20,
            prefetch: 320 << 10,
        },
        overhead: Span::from_micros(100),
        rebuild_rate: Bandwidth::new(10_000_000).unwrap(),
    };
    assert_eq!(options.units, [expected.clone(), expected]);
}

#[test]
fn a_disk_has_own_figures_beside_those_of_the_one_that_it_is_like() {
    let text = r#"disks = 1
raid = "single"
disk = { like = "cheetah-18lp", tags = 1, order = "fifo", seek_average = "5.5ms" }"#;
    let options = parse(text).unwrap().options().unwrap();
    let MemberOptions::Disk(disk) = &options.units[0].member else { panic!("no disk") };
    assert_eq!((disk.tags.get(), disk.seek.average, disk.rpm), (1, Span::from_micros(5_500), 10_000));
}

#[test]
fn stations_and_flash_are_members_as_well() {
    let station = "disks = 1\nraid = \"single\"\nsize = \"1GiB\"\n\
                   station = { servers = 8, service_time = \"5ms\", exponential = true }";
    assert_eq!(parse(station).unwrap().options().unwrap().size(), 1 << 30);
    for name in SsdOptions::PRESETS {
        let ssd = format!("disks = 2\nraid = \"raid1\"\nssd = \"{name}\"");
        assert!(parse(&ssd).unwrap().options().unwrap().size() > 1 << 30);
    }
}

#[test]
fn what_cannot_be_built_is_said_with_its_key_what_was_found_and_what_is_accepted() {
    let base = "disk = \"cheetah-18lp\"\nraid = \"raid5\"\n";
    for (text, expected) in [
        (format!("disks = 2\n{base}"), "disks: logical unit 0: found 2 disks; accepted for Raid5: 3 to 1024"),
        (
            format!("disks = 6\n{base}size = \"20TiB\""),
            "size: logical unit 0: found a size of 21990232555520 bytes; accepted: a multiple of 4096 up to ",
        ),
        (
            format!("disks = 6\n{base}low_water = 0.9\nnvram = \"1MiB\""),
            "low_water: logical unit 0: found low water 0.9 and high water 0.8; accepted: 0 <= low <= high <= 1",
        ),
        (format!("disks = 6\n{base}unit = \"64KiB\""), "unit: found 65536 bytes; accepted: no unit, or "),
        (
            format!("disks = 6\n{base}ports = 2"),
            "port_bandwidth: found none beside ports or port_overhead; accepted: ",
        ),
        (
            "disks = 1\nraid = \"single\"\ndisk = \"st506\"".to_owned(),
            "disk: found \"st506\"; accepted: cheetah-18, cheetah-18lp, cheetah-x15, cheetah-15k.3",
        ),
        (
            "disks = 1\nraid = \"single\"".to_owned(),
            "disk: found 0 of disk, ssd and station; accepted: one of the three",
        ),
    ] {
        let error = error(&text);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn what_is_not_understood_is_refused_when_it_is_read() {
    for (line, expected) in [
        ("stripe = \"64KiB\"", "unknown field `stripe`"),
        ("size = \"20G\"", "invalid value: string \"20G\", expected a size with its unit"),
        ("raid = \"raid6\"", "unknown variant `raid6`"),
        ("disk = 3", "expected the name of a disk, or a table"),
        ("disk = { like = \"cheetah-18lp\", heads = 3 }", "unknown field `heads`"),
    ] {
        let key = line.split(' ').next().unwrap();
        let rest = ["disks = 6", "disk = \"cheetah-18lp\"", "raid = \"raid5\""];
        let rest = rest.into_iter().filter(|other| !other.starts_with(&format!("{key} ")));
        let text = rest.chain([line]).collect::<Vec<_>>().join("\n");
        let error = parse(&text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
