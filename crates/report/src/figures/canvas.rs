//! An SVG document, element by element.

use super::colours::{Line, Mark};
use crate::text::{escaped, wrapped};

/// The font; Verdana has nearly the same widths where it is missing.
pub(super) const FONT: &str = "DejaVu Sans";
/// Text and axes.
pub(super) const INK: &str = "#222222";
/// Lesser text.
pub(super) const GREY: &str = "#666666";
/// Grid lines.
pub(super) const FAINT: &str = "#e4e4e4";

/// Size of the smallest text.
pub(super) const NOTE: f64 = 15.5;

/// Which point of a text its position is.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub size: f64,
    pub bold: bool,
    pub colour: &'static str,
    pub anchor: Anchor,
}

impl Style {
    /// Left-aligned text.
    pub fn new(size: f64, colour: &'static str) -> Self {
        Self { size, bold: false, colour, anchor: Anchor::Start }
    }

    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }
}

/// A document that grows downwards in drawing order. Positions and sizes are in SVG units.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Canvas {
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, title: escaped(title), body: String::new() }
    }

    pub fn finish(self) -> String {
        let Self { width, height, title, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" font-family=\"'{FONT}', Verdana, sans-serif\">\n<title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64, dash: &str) {
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let [(x1, y1), (x2, y2)] = [from, to].map(rounded);
        self.body += &format!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>\n"
        );
    }

    pub fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), colour: &str, opacity: f64) {
        let [(x, y), (width, height)] = [corner, size].map(rounded);
        self.body += &format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>\n"
        );
    }

    pub fn circle(&mut self, centre: (f64, f64), radius: f64, colour: &str, opacity: f64) {
        let (x, y) = rounded(centre);
        self.body += &format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{colour}\" fill-opacity=\"{opacity}\" \
             stroke=\"#ffffff\" stroke-width=\"1\"/>\n"
        );
    }

    /// A circle that tells `words` to whoever points at it.
    pub fn told_circle(&mut self, centre: (f64, f64), radius: f64, colour: &str, opacity: f64, words: &str) {
        self.circle(centre, radius, colour, opacity);
        self.tell(words);
    }

    /// The same for a circle that is not filled.
    pub fn told_ring(&mut self, centre: (f64, f64), radius: f64, colour: &str, words: &str) {
        let (x, y) = rounded(centre);
        self.body += &format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>\n"
        );
        self.tell(words);
    }

    /// Gives the circle that was just drawn a title.
    fn tell(&mut self, words: &str) {
        for _ in "/>\n".chars() {
            self.body.pop();
        }
        self.body += &format!("><title>{}</title></circle>\n", escaped(words));
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], colour: &str, width: f64, dash: &str) {
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        self.body += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"{dash}/>\n",
            listed(points)
        );
    }

    /// A mark on a line.
    pub fn mark(&mut self, (x, y): (f64, f64), mark: Mark, colour: &str) {
        match mark {
            Mark::None => {}
            Mark::Circle => self.circle((x, y), 6.0, colour, 1.0),
            Mark::Square => self.rectangle((x - 5.0, y - 5.0), (10.0, 10.0), colour, 1.0),
        }
    }

    /// A line of an arm with a few marks on it.
    pub fn arm_line(&mut self, points: &[(f64, f64)], line: Line, width: f64) {
        const MARKED: usize = 6;
        self.polyline(points, line.colour, width, line.dash);
        let every = points.len().div_ceil(MARKED).max(1);
        for at in points.iter().skip(every / 2).step_by(every) {
            self.mark(*at, line.mark, line.colour);
        }
    }

    /// What stands for an arm in a legend, from `(x, y)` on, 34 wide.
    pub fn sample(&mut self, (x, y): (f64, f64), line: Line) {
        self.line((x, y), (x + 34.0, y), line.colour, 4.0, line.dash);
        self.mark((x + 17.0, y), line.mark, line.colour);
    }

    /// A filled area.
    pub fn polygon(&mut self, points: &[(f64, f64)], colour: &str, opacity: f64) {
        self.body += &format!(
            "<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"{opacity}\" stroke=\"none\"/>\n",
            listed(points)
        );
    }

    /// Small grey lines at the bottom, from `top` on; the drawing becomes higher where they need it.
    pub fn note(&mut self, top: f64, text: &str) {
        let most = ((self.width - 80.0) / (NOTE * 0.56)) as usize;
        let lines = wrapped(text, most);
        self.height = self.height.max(top + 21.0 * lines.len() as f64 - 3.0);
        for (index, line) in lines.iter().enumerate() {
            self.text((40.0, top + 21.0 * index as f64), line, Style::new(NOTE, GREY));
        }
    }

    pub fn text(&mut self, at: (f64, f64), text: &str, style: Style) {
        self.turned(at, text, style, 0.0);
    }

    /// Text turned by degrees around its position.
    pub fn turned(&mut self, at: (f64, f64), text: &str, style: Style, degrees: f64) {
        let (x, y) = rounded(at);
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
        let turn = if degrees == 0.0 { String::new() } else { format!(" transform=\"rotate({degrees} {x} {y})\"") };
        self.body += &format!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}{turn}>{}</text>\n",
            style.size,
            style.colour,
            escaped(text)
        );
    }
}

/// Roughly the width of a text, from the font's mean advance.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.59
}

fn listed(points: &[(f64, f64)]) -> String {
    let pair = |point: &(f64, f64)| {
        let (x, y) = rounded(*point);
        format!("{x},{y}")
    };
    points.iter().map(pair).collect::<Vec<_>>().join(" ")
}

/// A tenth of a unit is finer than any eye.
fn rounded((x, y): (f64, f64)) -> (f64, f64) {
    ((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_makes_the_drawing_higher() {
        let height = |words: usize| {
            let mut canvas = Canvas::new(400.0, 60.0, "title");
            canvas.note(40.0, &"word ".repeat(words));
            canvas.height
        };
        assert_eq!((height(2), height(20)), (60.0, 40.0 + 21.0 * 3.0 - 3.0));
    }

    #[test]
    fn a_told_circle_has_its_words_as_text() {
        let mut canvas = Canvas::new(100.0, 100.0, "title");
        canvas.told_circle((1.0, 2.0), 3.0, "#000000", 1.0, "a < b");
        let svg = canvas.finish();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let titles = document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")));
        assert_eq!(titles.filter_map(|node| node.text()).collect::<Vec<_>>(), ["title", "a < b"]);
    }
}
