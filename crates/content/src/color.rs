//! The CSS colours that a highlight may have: a name, `#hex`, `rgb()` or `hsl()`.

/// Returns the colour as browsers serialise it, or `None` if it is no such colour.
///
/// Names become lower case, and everything else becomes `rgb(…)` or `rgba(…)`.
pub(crate) fn canonical(color: &str) -> Option<String> {
    let color = color.trim().to_ascii_lowercase();
    if color.len() > COLOR_LEN_MAX {
        return None;
    }
    if let Some(hex) = color.strip_prefix('#') {
        return from_hex(hex).map(|[r, g, b, a]| write_rgb(r, g, b, f64::from(a) / 255.0));
    }
    if let Some((function, arguments)) = color.split_once('(') {
        return from_function(function, arguments.strip_suffix(')')?);
    }
    NAMES.split_ascii_whitespace().any(|name| name == color).then_some(color)
}

pub(crate) fn is_color(color: &str) -> bool {
    canonical(color).is_some()
}

/// The limit on bytes of a colour. Colours with all their digits are far shorter.
const COLOR_LEN_MAX: usize = 100;

fn from_hex(hex: &str) -> Option<[u8; 4]> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits?[..] {
        [r, g, b] => Some([r * 17, g * 17, b * 17, 255]),
        [r, g, b, a] => Some([r * 17, g * 17, b * 17, a * 17]),
        [r1, r2, g1, g2, b1, b2] => Some([r1 * 16 + r2, g1 * 16 + g2, b1 * 16 + b2, 255]),
        [r1, r2, g1, g2, b1, b2, a1, a2] => {
            Some([r1 * 16 + r2, g1 * 16 + g2, b1 * 16 + b2, a1 * 16 + a2])
        }
        _ => None,
    }
}

fn from_function(function: &str, arguments: &str) -> Option<String> {
    let parts: Vec<&str> =
        arguments.split([',', '/', ' ', '\t', '\n']).filter(|part| !part.is_empty()).collect();
    let (colors, alpha) = match parts[..] {
        [a, b, c] => ([a, b, c], 1.0),
        [a, b, c, alpha] => ([a, b, c], fraction(alpha)?),
        _ => return None,
    };
    match function {
        "rgb" | "rgba" => {
            let [r, g, b] = colors.map(channel);
            Some(write_rgb(r?, g?, b?, alpha))
        }
        "hsl" | "hsla" => {
            let [hue, saturation, lightness] = colors;
            let [r, g, b] = rgb_of_hsl(degrees(hue)?, percent(saturation)?, percent(lightness)?);
            Some(write_rgb(r, g, b, alpha))
        }
        _ => None,
    }
}

fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    text.parse().ok().filter(|_| plain)
}

/// Parses a colour channel of `rgb()`: 0 to 255, or a percentage.
fn channel(text: &str) -> Option<u8> {
    match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| to_byte(percent / 100.0)),
        None => number(text).map(|value| to_byte(value / 255.0)),
    }
}

/// Parses an opacity: 0 to 1, or a percentage.
fn fraction(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    Some(value.clamp(0.0, 1.0))
}

fn percent(text: &str) -> Option<f64> {
    Some((number(text.strip_suffix('%').unwrap_or(text))? / 100.0).clamp(0.0, 1.0))
}

fn degrees(text: &str) -> Option<f64> {
    let per_unit =
        [("deg", 1.0), ("grad", 0.9), ("rad", 180.0 / std::f64::consts::PI), ("turn", 360.0)];
    for (unit, degrees) in per_unit {
        if let Some(value) = text.strip_suffix(unit) {
            return Some(number(value)? * degrees);
        }
    }
    number(text)
}

/// Converts HSL to RGB (CSS Color 4, section 7.1).
fn rgb_of_hsl(hue: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    let reach = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|offset| {
        let turn = (offset + hue.rem_euclid(360.0) / 30.0) % 12.0;
        to_byte(lightness - reach * (turn - 3.0).min(9.0 - turn).clamp(-1.0, 1.0))
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0 to 255")]
fn to_byte(fraction: f64) -> u8 {
    (fraction * 255.0).round().clamp(0.0, 255.0) as u8
}

fn write_rgb(r: u8, g: u8, b: u8, alpha: f64) -> String {
    if alpha >= 1.0 {
        return format!("rgb({r}, {g}, {b})");
    }
    // Two decimals, if they identify one of the 256 steps (CSS Color 4, 15.2).
    let short = (alpha * 100.0).round() / 100.0;
    let same = to_byte(short) == to_byte(alpha);
    let alpha = if same { short } else { (alpha * 1000.0).round() / 1000.0 };
    format!("rgba({r}, {g}, {b}, {alpha})")
}

/// The named colours of CSS Color 4, section 6.1, and the two keywords that are safe in any
/// context.
const NAMES: &str = "
aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet
brown burlywood cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue
darkcyan darkgoldenrod darkgray darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange
darkorchid darkred darksalmon darkseagreen darkslateblue darkslategray darkslategrey darkturquoise
darkviolet deeppink deepskyblue dimgray dimgrey dodgerblue firebrick floralwhite forestgreen fuchsia
gainsboro ghostwhite gold goldenrod gray green greenyellow grey honeydew hotpink indianred indigo
ivory khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan
lightgoldenrodyellow lightgray lightgreen lightgrey lightpink lightsalmon lightseagreen lightskyblue
lightslategray lightslategrey lightsteelblue lightyellow lime limegreen linen magenta maroon
mediumaquamarine mediumblue mediumorchid mediumpurple mediumseagreen mediumslateblue
mediumspringgreen mediumturquoise mediumvioletred midnightblue mintcream mistyrose moccasin
navajowhite navy oldlace olive olivedrab orange orangered orchid palegoldenrod palegreen
paleturquoise palevioletred papayawhip peachpuff peru pink plum powderblue purple rebeccapurple red
rosybrown royalblue saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue slateblue
slategray slategrey snow springgreen steelblue tan teal thistle tomato turquoise violet wheat white
whitesmoke yellow yellowgreen transparent currentcolor";
