// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"image"
	"image/color/palette"
	"image/draw"
	_ "image/gif"  // a format of images in results
	_ "image/jpeg" // the same
	"image/png"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
)

// ImageFormat is how a terminal shows images.
type ImageFormat int

// The formats of images.
const (
	NoImages ImageFormat = iota // images are described
	Kitty                       // Kitty's graphics protocol
	ITerm2                      // iTerm2's inline images
	Sixel                       // DEC sixel graphics
)

// imageFormatFor derives the format from variables of the environment.
func imageFormatFor(env func(string) string) ImageFormat {
	name, program := strings.ToLower(env("TERM")), strings.ToLower(env("TERM_PROGRAM"))
	switch {
	case env("KITTY_WINDOW_ID") != "", strings.Contains(name, "kitty"), program == "ghostty", strings.Contains(name, "ghostty"):
		return Kitty
	case program == "iterm.app", program == "wezterm":
		return ITerm2
	case strings.HasPrefix(name, "foot"), strings.HasPrefix(name, "mlterm"), strings.Contains(name, "sixel"):
		return Sixel
	}
	return NoImages
}

// The bounds of images. A larger one is described.
const (
	maxImageBytes  = 8 << 20
	maxImagePixels = 16 << 20
	maxImageRows   = 20 // of the screen
	maxImageColumn = 60
	maxImageSide   = 1200 // in pixels; larger ones are scaled down before they are sent
)

// Image returns the escape sequence that draws an image at the cursor, and how many rows
// it takes; empty if the terminal shows no images, or the image is too large or in another
// format than PNG, JPEG and GIF. The image is decoded and encoded again, so that nothing
// but pixels reaches the terminal.
func Image(style Style, content canister.ImageContent) (sequence string, rows int) {
	if style.Images == NoImages || len(content.Data) == 0 || len(content.Data) > maxImageBytes {
		return "", 0
	}
	about, _, err := image.DecodeConfig(bytes.NewReader(content.Data))
	if err != nil || about.Width <= 0 || about.Height <= 0 || about.Width > maxImagePixels/about.Height {
		return "", 0
	}
	picture, _, err := image.Decode(bytes.NewReader(content.Data))
	if err != nil {
		return "", 0
	}
	picture = shrink(picture, maxImageSide)
	size := picture.Bounds().Size()
	// A cell of the screen is about twice as high as it is wide.
	columns := min(style.width(), maxImageColumn, max(1, size.X/8))
	rows = max(1, (columns*size.Y+2*size.X-1)/(2*size.X))
	if most := min(cmp.Or(style.ImageRows, maxImageRows), maxImageRows); rows > most {
		rows = most
		columns = max(1, rows*2*size.X/size.Y)
	}
	if style.Images == Sixel {
		return sixel(shrink(picture, max(8*columns, 16*rows))), rows
	}
	var data bytes.Buffer
	if png.Encode(&data, picture) != nil {
		return "", 0
	}
	encoded := base64.StdEncoding.EncodeToString(data.Bytes())
	if style.Images == ITerm2 {
		return fmt.Sprintf("\x1b]1337;File=inline=1;size=%d;width=%d;height=%d;preserveAspectRatio=1:%s\a", data.Len(), columns, rows, encoded), rows
	}
	return kitty(encoded, columns, rows), rows
}

// kitty returns the sequence of Kitty's graphics protocol
// (https://sw.kovidgoyal.net/kitty/graphics-protocol/): a PNG in pieces of 4096 bytes,
// and q=2, so that the terminal sends no response.
func kitty(encoded string, columns, rows int) string {
	const piece = 4096
	var b strings.Builder
	control := fmt.Sprintf("a=T,f=100,q=2,c=%d,r=%d,", columns, rows)
	for encoded != "" {
		n := min(piece, len(encoded))
		more := 0
		if n < len(encoded) {
			more = 1
		}
		fmt.Fprintf(&b, "\x1b_G%sm=%d;%s\x1b\\", control, more, encoded[:n])
		encoded, control = encoded[n:], ""
	}
	return b.String()
}

// shrink returns an image of at most most pixels in width and height.
func shrink(picture image.Image, most int) image.Image {
	from := picture.Bounds()
	side := max(from.Dx(), from.Dy())
	if side <= most {
		return picture
	}
	to := image.NewRGBA(image.Rect(0, 0, max(1, from.Dx()*most/side), max(1, from.Dy()*most/side)))
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			to.Set(x, y, picture.At(from.Min.X+x*side/most, from.Min.Y+y*side/most))
		}
	}
	return to
}

// sixel returns an image as sixel graphics (VT330/VT340 Programmer Reference Manual,
// volume 2, chapter 14): rows of six pixels, one pass for each colour.
func sixel(picture image.Image) string {
	size := picture.Bounds()
	drawn := image.NewPaletted(image.Rect(0, 0, size.Dx(), size.Dy()), palette.Plan9)
	draw.FloydSteinberg.Draw(drawn, drawn.Rect, picture, size.Min)
	var b strings.Builder
	fmt.Fprintf(&b, "\x1bPq\"1;1;%d;%d", size.Dx(), size.Dy())
	for i, c := range drawn.Palette {
		red, green, blue, _ := c.RGBA()
		fmt.Fprintf(&b, "#%d;2;%d;%d;%d", i, red*100/0xffff, green*100/0xffff, blue*100/0xffff)
	}
	for top := 0; top < size.Dy(); top += 6 {
		sixelBand(&b, drawn, top)
		b.WriteByte('-')
	}
	b.WriteString("\x1b\\")
	return b.String()
}

// sixelBand writes six rows of pixels.
func sixelBand(b *strings.Builder, drawn *image.Paletted, top int) {
	width := drawn.Rect.Dx()
	bands := map[uint8][]byte{}
	for y := top; y < min(top+6, drawn.Rect.Dy()); y++ {
		for x := range width {
			color := drawn.ColorIndexAt(x, y)
			if bands[color] == nil {
				bands[color] = make([]byte, width)
			}
			bands[color][x] |= 1 << (y - top)
		}
	}
	for color := range len(drawn.Palette) {
		bits := bands[uint8(color)]
		if bits == nil {
			continue
		}
		fmt.Fprintf(b, "#%d", color)
		for x := 0; x < width; {
			run := 1
			for x+run < width && bits[x+run] == bits[x] {
				run++
			}
			b.WriteString("!" + strconv.Itoa(run) + string(rune('?'+bits[x])))
			x += run
		}
		b.WriteByte('$')
	}
}
