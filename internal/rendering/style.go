// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Style describes the terminal. The zero value is a terminal of 80 columns without
// colours.
type Style struct {
	Width  int         // columns of a line; 0 means 80, and less than 20 counts as 20
	Color  bool        // colours and other attributes, such as bold
	Light  bool        // the background is light
	ASCII  bool        // lines, bullets and marks are written in ASCII; content is not changed
	Links  bool        // the terminal supports hyperlinks (OSC 8)
	Images ImageFormat // how the terminal shows images
	// ImageRows bounds the rows of an image; 0 means 20, which is the most in any case.
	ImageRows int
}

// StyleFor derives a style from the variables of the environment. Width is in columns.
//
//   - NO_COLOR (https://no-color.org) and TERM=dumb disable colours;
//   - a locale whose character set is not UTF-8 (LC_ALL, LC_CTYPE, LANG) selects ASCII;
//   - COLORFGBG, as rxvt and others set it, reports a light background;
//   - TERM, TERM_PROGRAM and variables of single terminals say whether links and images
//     are supported. A terminal multiplexer supports neither.
func StyleFor(env func(name string) string, width int) Style {
	s := Style{Width: width, ASCII: !isUTF8(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG")))}
	if env("TERM") == "dumb" {
		return s
	}
	s.Color = env("NO_COLOR") == ""
	s.Light = isLight(env("COLORFGBG"))
	if env("TMUX") == "" && env("STY") == "" {
		s.Links = supportsLinks(env)
		s.Images = imageFormatFor(env)
	}
	return s
}

// isUTF8 reports whether the character set of a locale is UTF-8. An unset locale counts
// as UTF-8, because many containers and remote shells set none.
func isUTF8(locale string) bool {
	folded := strings.ReplaceAll(strings.ToLower(locale), "-", "")
	return locale == "" || strings.Contains(folded, "utf8")
}

// isLight reads the background from COLORFGBG, such as "0;15" or "0;default;15".
func isLight(colors string) bool {
	background, err := strconv.Atoi(colors[strings.LastIndexByte(colors, ';')+1:])
	return err == nil && (background == 7 || background > 8)
}

// linkTerminals are values of TERM_PROGRAM, and parts of TERM, of terminals that support
// OSC 8.
var linkTerminals = []string{"iterm.app", "wezterm", "vscode", "ghostty", "hyper", "tabby", "kitty", "alacritty", "foot", "contour"}

func supportsLinks(env func(string) string) bool {
	if vte, err := strconv.Atoi(env("VTE_VERSION")); err == nil && vte >= 5000 {
		return true
	}
	if env("WT_SESSION") != "" || env("KITTY_WINDOW_ID") != "" {
		return true
	}
	name, program := strings.ToLower(env("TERM")), strings.ToLower(env("TERM_PROGRAM"))
	return slices.ContainsFunc(linkTerminals, func(known string) bool {
		return program == known || strings.Contains(name, known)
	})
}

// width returns the number of columns of a line.
func (s Style) width() int {
	if s.Width == 0 {
		return 80
	}
	return max(20, s.Width)
}

// symbols are the characters that draw lines and marks.
type symbols struct {
	bullet, bar, rule, cross, done, failed, more, folded, dot, arrow string
	spinner                                                          []string
}

var (
	unicodeSymbols = symbols{
		bullet: "•", bar: "│", rule: "─", cross: "┼", done: "✓", failed: "✗", more: "…", folded: "▸", dot: " · ", arrow: "→",
		spinner: []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"},
	}
	asciiSymbols = symbols{
		bullet: "*", bar: "|", rule: "-", cross: "+", done: "+", failed: "x", more: "...", folded: ">", dot: " | ", arrow: "->",
		spinner: []string{"|", "/", "-", "\\"},
	}
)

func (s Style) symbols() *symbols {
	if s.ASCII {
		return &asciiSymbols
	}
	return &unicodeSymbols
}

// ink is how a piece of text looks. The zero value is plain text.
type ink struct {
	color                                    uint8 // a code of SGR, 30 to 37 and 90 to 97; 0 is the default
	bold, faint, italic, underlined, crossed bool
}

// sgr returns the escape sequence that starts the ink (ECMA-48, 8.3.117); empty for the
// zero value.
func (i ink) sgr() string {
	codes := make([]string, 0, 6)
	for _, attribute := range []struct {
		on   bool
		code int
	}{{i.bold, 1}, {i.faint, 2}, {i.italic, 3}, {i.underlined, 4}, {i.crossed, 9}, {i.color != 0, int(i.color)}} {
		if attribute.on {
			codes = append(codes, strconv.Itoa(attribute.code))
		}
	}
	if len(codes) == 0 {
		return ""
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

const resetInk = "\x1b[0m"

// The sixteen colours of the terminal's own theme: they suit its background, which colours
// by number or by RGB need not. On a dark background some are used in their bright form.
const (
	red, green, yellow, blue, magenta, cyan uint8 = 31, 32, 33, 34, 35, 36
	gray                                    uint8 = 90
	bright                                  uint8 = 60
)

// shade returns a colour in the form that is readable on the background.
func (s Style) shade(color uint8) uint8 {
	if s.Light {
		return color
	}
	return color + bright
}

func (s Style) headingInk(level int) ink {
	return ink{color: s.shade(cyan), bold: true, underlined: level == 1}
}

func (s Style) codeInk() ink {
	if s.Light {
		return ink{color: magenta}
	}
	return ink{color: yellow}
}

func (s Style) linkInk() ink { return ink{color: s.shade(blue), underlined: true} }
func (s Style) goodInk() ink { return ink{color: green} }
func (s Style) badInk() ink  { return ink{color: red} }
func (s Style) nameInk() ink { return ink{color: cyan} }

func (s Style) warnInk() ink {
	if s.Light {
		return ink{color: red, bold: true}
	}
	return ink{color: yellow, bold: true}
}

var (
	faintInk = ink{faint: true}
	boldInk  = ink{bold: true}
)
