//! From a drawing to pixels and to SVG.
//!
//! A server has no fonts, so the font is part of the program. It measures the text, and in the PNG also
//! paints it. The colours are those of Okabe and Ito, which people with colour blindness can tell apart.

use std::sync::Once;

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{Axis, Drawing, Key, Line, Panel, Stroke, png};

const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
/// Lines that belong to no volume.
const NEUTRAL: RGBColor = RGBColor(90, 90, 90);
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(226, 226, 226);

const FONT: &str = "sans-serif";
/// The height of the title with one row of the legend, and of each further row.
const HEAD: u32 = 74;
const LEGEND_ROW: u32 = 22;
const ROW: u32 = 270;
const COLUMN: u32 = 520;
const LEAST_WIDTH: u32 = 820;

type Failure<DB> = DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>;

/// The drawing as SVG.
pub(super) fn svg(drawing: &Drawing) -> anyhow::Result<String> {
    register_fonts();
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, size(drawing)).into_drawing_area();
    paint(drawing, &area).map_err(|error| anyhow!("{}: cannot be drawn: {error}", drawing.title))?;
    drop(area);
    Ok(text)
}

/// The drawing as PNG.
pub(super) fn png(drawing: &Drawing) -> anyhow::Result<Vec<u8>> {
    register_fonts();
    let (width, height) = size(drawing);
    let count = usize::try_from(u64::from(width) * u64::from(height))?;
    let mut pixels = vec![0; count * png::PIXEL];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    paint(drawing, &area).map_err(|error| anyhow!("{}: cannot be drawn: {error}", drawing.title))?;
    drop(area);
    Ok(png::encode(width, height, &pixels)?)
}

fn register_fonts() {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        for (style, bytes) in
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
        {
            assert!(plotters::style::register_font(FONT, style, bytes).is_ok(), "the font is one");
        }
    });
}

fn size(drawing: &Drawing) -> (u32, u32) {
    let of = |count: usize, each: u32| u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(each);
    let rows = drawing.panels.len().div_ceil(drawing.columns.max(1));
    let row = if rows == 1 { ROW + ROW / 2 } else { ROW };
    (width(drawing), head(drawing) + of(rows, row))
}

fn width(drawing: &Drawing) -> u32 {
    u32::try_from(drawing.columns).unwrap_or(u32::MAX).saturating_mul(COLUMN).max(LEAST_WIDTH)
}

/// The height of the title with the legend.
fn head(drawing: &Drawing) -> u32 {
    HEAD + legend(drawing).last().map_or(0, |(_, row)| row * LEGEND_ROW)
}

/// The place of each entry of the legend: from the left, and in which row.
fn legend(drawing: &Drawing) -> Vec<(u32, u32)> {
    let font = (FONT, 14).into_font();
    let (mut x, mut row) = (20, 0);
    let place = |key: &Key| {
        let text = font.box_size(&key.name).map_or(0, |(width, _)| width);
        if x > 20 && x + 34 + text > width(drawing) {
            (x, row) = (20, row + 1);
        }
        let place = (x, row);
        x += 34 + text + 26;
        place
    };
    drawing.legend.iter().map(place).collect()
}

fn paint<DB: DrawingBackend>(drawing: &Drawing, area: &DrawingArea<DB, Shift>) -> Result<(), Failure<DB>> {
    area.fill(&WHITE)?;
    let (top, body) = area.split_vertically(head(drawing));
    paint_head(drawing, &top)?;
    let rows = drawing.panels.len().div_ceil(drawing.columns.max(1));
    for (place, panel) in body.split_evenly((rows, drawing.columns)).iter().zip(&drawing.panels) {
        paint_panel(panel, place)?;
    }
    area.present()
}

/// The title, and below it the legend for all panels.
fn paint_head<DB: DrawingBackend>(
    drawing: &Drawing,
    area: &DrawingArea<DB, Shift>,
) -> Result<(), Failure<DB>> {
    let title = (FONT, 20, FontStyle::Bold).into_font().color(&INK);
    area.draw_text(&drawing.title, &title, (20, 12))?;
    let text = (FONT, 14).into_font().color(&INK);
    for (key, (x, row)) in drawing.legend.iter().zip(legend(drawing)) {
        let of = |pixels: u32| i32::try_from(pixels).unwrap_or(i32::MAX);
        let (x, y) = (of(x), of(row * LEGEND_ROW));
        let colour = colour(key.stroke);
        let dashes: &[(i32, i32)] =
            if key.stroke.dashed { &[(0, 7), (10, 17), (20, 27)] } else { &[(0, 27)] };
        for (from, to) in dashes {
            let dash = vec![(x + from, y + 53), (x + to, y + 53)];
            area.draw(&PathElement::new(dash, colour.stroke_width(3)))?;
        }
        area.draw_text(&key.name, &text, (x + 34, y + 45))?;
    }
    Ok(())
}

fn paint_panel<DB: DrawingBackend>(panel: &Panel, area: &DrawingArea<DB, Shift>) -> Result<(), Failure<DB>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(8).margin_right(22).x_label_area_size(42).y_label_area_size(68);
    if !panel.title.is_empty() {
        builder.caption(&panel.title, (FONT, 16).into_font().color(&INK));
    }
    let (x, y) = (panel.x.from..panel.x.to, panel.y.from..panel.y.to);
    if panel.y.log {
        paint_chart(panel, builder.build_cartesian_2d(x, y.log_scale())?)
    } else {
        paint_chart(panel, builder.build_cartesian_2d(x, y)?)
    }
}

fn paint_chart<DB, Y>(
    panel: &Panel,
    mut chart: ChartContext<'_, DB, Cartesian2d<RangedCoordf64, Y>>,
) -> Result<(), Failure<DB>>
where
    DB: DrawingBackend,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style((FONT, 13).into_font().color(&INK))
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label)
        .x_label_formatter(&shown)
        .y_label_formatter(&shown)
        .y_labels(7)
        .draw()?;
    for line in &panel.lines {
        paint_line(line, &panel.y, &mut chart)?;
    }
    Ok(())
}

fn paint_line<DB, Y>(
    line: &Line,
    axis: &Axis,
    chart: &mut ChartContext<'_, DB, Cartesian2d<RangedCoordf64, Y>>,
) -> Result<(), Failure<DB>>
where
    DB: DrawingBackend,
    Y: Ranged<ValueType = f64>,
{
    let colour = colour(line.stroke);
    let style = colour.stroke_width(2);
    for piece in &line.pieces {
        let points = piece.iter().map(|(x, y)| (*x, y.clamp(axis.from, axis.to)));
        if line.stroke.dashed {
            chart.draw_series(DashedLineSeries::new(points.clone(), 7, 4, style))?;
        } else {
            chart.draw_series(LineSeries::new(points.clone(), style))?;
        }
        // A piece of one point has no length, and would not be seen.
        if line.marked || piece.len() == 1 {
            chart.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?;
        }
    }
    Ok(())
}

fn colour(stroke: Stroke) -> RGBColor {
    match stroke.colour {
        usize::MAX => NEUTRAL,
        number => PALETTE[number % PALETTE.len()],
    }
}

/// A number at an axis, without needless digits.
fn shown(value: &f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}
