//! A picture as PNG (ISO/IEC 15948): 8 bits of red, green and blue for each pixel, no filter, one piece of
//! data.
//!
//! The project writes PNG itself. A crate that encodes PNG would bring a second implementation of deflate,
//! and the one that unpacks traces already does all the work. A figure is mostly white, so it is small
//! without filters.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Bytes of a pixel.
pub(super) const PIXEL: usize = 3;

/// Eight bits a channel; truecolour; the only methods of compression and filtering there are; no interlacing.
const FORM: [u8; 5] = [8, 2, 0, 0, 0];

/// The picture of these rows of pixels, from the top.
///
/// # Panics
/// If there are not `width` times `height` pixels, or none.
pub(super) fn encode(width: u32, height: u32, pixels: &[u8]) -> std::io::Result<Vec<u8>> {
    let row = PIXEL * usize::try_from(width).expect("32 bits fit");
    assert_eq!(Some(pixels.len()), usize::try_from(height).ok().and_then(|rows| rows.checked_mul(row)));
    let mut header = Vec::from([width.to_be_bytes(), height.to_be_bytes()].as_flattened());
    header.extend(FORM);
    let mut data = ZlibEncoder::new(Vec::new(), Compression::best());
    for row in pixels.chunks_exact(row) {
        data.write_all(&[0])?; // not filtered
        data.write_all(row)?;
    }
    let mut file = Vec::from(SIGNATURE);
    put_chunk(&mut file, *b"IHDR", &header);
    put_chunk(&mut file, *b"IDAT", &data.finish()?);
    put_chunk(&mut file, *b"IEND", &[]);
    Ok(file)
}

fn put_chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).expect("a picture has less than 4 GiB");
    let mut check = Crc::new();
    check.update(&kind);
    check.update(data);
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend(data);
    file.extend(check.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    /// A picture of one white pixel as other encoders write it, except for its data.
    const HEADER: &str = "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de";

    #[test]
    fn the_header_is_what_others_write() {
        let picture = encode(1, 1, &[255; 3]).unwrap();
        let hex: String = picture[..33].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, HEADER);
        assert!(picture.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"));
    }

    #[test]
    fn the_data_are_the_rows_with_their_filters() {
        let pixels: Vec<u8> = (0..18).collect();
        let picture = encode(3, 2, &pixels).unwrap();
        let length = usize::try_from(u32::from_be_bytes(picture[33..37].try_into().unwrap())).unwrap();
        assert_eq!(&picture[37..41], b"IDAT");
        let mut rows = Vec::new();
        ZlibDecoder::new(&picture[41..41 + length]).read_to_end(&mut rows).unwrap();
        let expected: Vec<u8> = [0].into_iter().chain(0..9).chain([0]).chain(9..18).collect();
        assert_eq!(rows, expected);
    }
}
