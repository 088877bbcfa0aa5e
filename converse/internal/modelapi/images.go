// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif" // for the sizes of images
	_ "image/jpeg"
	_ "image/png"
	"regexp"
	"strconv"

	"github.com/consort-go/consort/converse"
)

// ImageLimits are the limits of a server for one image; 0 means that no limit is known.
type ImageLimits struct {
	Pixels int // of each side
	Bytes  int // of the data in base64
}

// These match the refusals of images that are too large, with the limit. Anthropic
// takes 8000 pixels, or 2000 if a request has more than 20 images, and 5 or 10 MB
// (platform.claude.com, Vision; anthropics/claude-code#4778, #49537). The limit of a request
// follows from its other images, so that it is known only from the refusal.
var (
	tooManyPixels = regexp.MustCompile(`image dimensions exceeds? max allowed size[^:]*: (\d+) pixels`)
	tooManyBytes  = regexp.MustCompile(`image exceeds [^:]*maximum: \d+ bytes > (\d+) bytes`)
)

// Shrink makes the next request encode the whole history again, without the images that are
// larger than the server said when it refused one. It returns false if that changes nothing.
func (t *Transcript) Shrink(failed *converse.ModelError) bool {
	if failed.Code != converse.CodeImage || t.shrunk >= maxShrunk {
		return false
	}
	before := t.images
	t.images.Pixels = lower(before.Pixels, tooManyPixels.FindStringSubmatch(failed.Message))
	t.images.Bytes = lower(before.Bytes, tooManyBytes.FindStringSubmatch(failed.Message))
	if t.images == before {
		return false
	}
	t.shrunk++
	t.marks, t.text = nil, nil
	return true
}

// maxShrunk bounds the requests of a conversation that a server can ask for by telling
// lower and lower limits. Each real server has at most two limits of each kind.
const maxShrunk = 8

// Images returns the limits that the server has told.
func (t *Transcript) Images() ImageLimits { return t.images }

// lower returns the limit that a message has, if it is below the known one.
func lower(known int, match []string) int {
	if match == nil {
		return known
	}
	limit, err := strconv.Atoi(match[1])
	if err != nil || limit <= 0 || known > 0 && limit >= known {
		return known
	}
	return limit
}

// over returns the reason why an image is over the limits; empty if it is not.
func (l ImageLimits) over(data []byte) string {
	if l.Bytes > 0 && base64.StdEncoding.EncodedLen(len(data)) > l.Bytes {
		return fmt.Sprintf("the model's server takes %s", byteCount(l.Bytes/4*3))
	}
	if width, height := imageSize(data); l.Pixels > 0 && max(width, height) > l.Pixels {
		return fmt.Sprintf("it has %d × %d pixels, and the model's server takes %d for each side", width, height, l.Pixels)
	}
	return ""
}

// imageSize returns the size of an image in pixels; 0 if it is unknown.
func imageSize(data []byte) (width, height int) {
	if config, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		return config.Width, config.Height
	}
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0
	}
	short := func(at int) int { return int(binary.LittleEndian.Uint16(data[at:])) }
	switch string(data[12:16]) { // RFC 9649, sections 2.5 to 2.7
	case "VP8 ":
		return short(26) & 0x3fff, short(28) & 0x3fff
	case "VP8L":
		bits := int(binary.LittleEndian.Uint32(data[21:]))
		return bits&0x3fff + 1, bits>>14&0x3fff + 1
	case "VP8X":
		return short(24) + int(data[26])<<16 + 1, short(27) + int(data[29])<<16 + 1
	}
	return 0, 0
}
