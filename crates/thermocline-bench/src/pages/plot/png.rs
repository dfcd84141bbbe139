//! SVG as PNG, for places that show no SVG.

use std::sync::Arc;

use anyhow::{Context, Result};
use resvg::{tiny_skia, usvg};

use super::canvas::SCALE;

/// How many pixels of the image there are for one of the drawing: sharp on dense screens.
const DENSITY: f32 = 1.5;

/// Renders a drawing. The font is part of this program, so machines without one give the same
/// result.
pub(super) fn render(svg: &str) -> Result<Vec<u8>> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = usvg::Options {
        fontdb: Arc::new(fonts),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options).context("cannot read the drawing")?;
    let scale = DENSITY / SCALE as f32;
    let size = tree
        .size()
        .to_int_size()
        .scale_by(scale)
        .context("the drawing has no size")?;
    let mut image = tiny_skia::Pixmap::new(size.width(), size.height())
        .context("the drawing is too large for an image")?;
    let transform = tiny_skia::Transform::from_scale(scale, scale);
    resvg::render(&tree, transform, &mut image.as_mut());
    image.encode_png().context("cannot write the image")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_appears_without_any_font_on_the_machine() {
        let svg = |words| {
            format!(
                "<svg width=\"800\" height=\"200\" viewBox=\"0 0 800 200\" xmlns=\"http://www.w3.org/2000/svg\">\
                 <text x=\"0\" y=\"150\" font-family=\"sans-serif\" font-size=\"100\" fill=\"#000000\">{words}</text></svg>"
            )
        };
        let dark = |words| {
            let png = render(&svg(words)).unwrap();
            let image = tiny_skia::Pixmap::decode_png(&png).unwrap();
            assert_eq!((image.width(), image.height()), (300, 75));
            image.pixels().iter().filter(|p| p.alpha() > 128).count()
        };
        assert_eq!(dark(""), 0);
        assert!(dark("95.4 % µs") > 500);
    }
}
