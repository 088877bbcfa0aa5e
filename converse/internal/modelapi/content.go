// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
)

// Part is one part of a message's content: text, an image or audio.
type Part struct {
	Text  string
	URL   string // of an image; the server downloads it
	Data  []byte // of an image or of audio
	MIME  string // of Data, for an image: image/png, image/jpeg, image/gif or image/webp
	Sound string // the format of Data, for audio: wav or mp3
	Name  string // of a file, whose MIME and Data are set
}

// Renderer renders content for a model.
type Renderer struct {
	NoImages bool // the model does not accept images
	Audio    bool // the model accepts audio
	Files    bool // the API carries files, such as PDF
	Images   ImageLimits
	Refused  Media // images and files that the server does not take
}

// IsText reports whether the part is text.
func (p Part) IsText() bool { return p.Sound == "" && p.MIME == "" && p.URL == "" }

// OnlyText returns the texts of parts, joined by newlines, if all of them are text.
func OnlyText(parts []Part) (string, bool) {
	if len(parts) == 1 && parts[0].IsText() {
		return parts[0].Text, true
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if !p.IsText() {
			return "", false
		}
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n"), true
}

// fetched matches the URLs that servers fetch an image from.
var fetched = regexp.MustCompile(`(?i)^https?://`)

// imageTypes are the image types that the API accepts.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// fileName returns the name of a file, which the model sees.
func fileName(uri string) string {
	name := path.Base(uri)
	if u, err := url.Parse(uri); err == nil && u.Path != "" {
		name = path.Base(u.Path)
	}
	if name = strings.TrimSuffix(textcut.Prefix(valid(name), 100), ".pdf"); name == "." || name == "/" || name == "" {
		name = "file"
	}
	return name + ".pdf"
}

// soundFormats are the audio formats of the API, by media type.
var soundFormats = map[string]string{
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
	"audio/mpeg": "mp3", "audio/mp3": "mp3",
}

// Parts returns contents as parts. Content that the API cannot carry becomes a line of
// text; nothing is dropped silently.
func (r Renderer) Parts(contents []canister.Content) []Part {
	parts := make([]Part, 0, len(contents))
	for _, c := range contents {
		parts = append(parts, r.Part(c)...)
	}
	return parts
}

// Part returns one piece of content as parts.
func (r Renderer) Part(c canister.Content) []Part {
	switch c := c.(type) {
	case canister.TextContent:
		return []Part{{Text: c.Text}}
	case canister.ImageContent:
		return []Part{r.image(c)}
	case canister.AudioContent:
		return []Part{r.audio(c)}
	case canister.ResourceContent:
		return r.resource(c)
	case canister.LinkContent:
		return []Part{{Text: linkLine(c)}}
	case canister.StructuredContent:
		return []Part{{Text: string(c.JSON)}}
	}
	return []Part{{Text: fmt.Sprintf("[%T, omitted: unknown type]", c)}}
}

// Text returns contents as text, for messages that can only contain text.
func (r Renderer) Text(contents []canister.Content) string {
	if len(contents) == 1 {
		if text, ok := contents[0].(canister.TextContent); ok {
			return text.Text
		}
	}
	texts := make([]string, 0, len(contents))
	for _, p := range r.Parts(contents) {
		texts = append(texts, p.line("such a message can only have text"))
	}
	return strings.Join(texts, "\n")
}

// line returns the text of a part. For other parts it returns a line that describes the
// part and gives the reason why it was left out.
func (p Part) line(fate string) string {
	switch {
	case p.IsText():
		return p.Text
	case p.Name != "":
		return "[file " + p.Name + ", " + strings.TrimPrefix(leftOut(p.MIME, len(p.Data), fate), "[")
	case p.URL != "":
		return "[image " + shortURL(p.URL) + ", omitted: " + fate + "]"
	case p.Sound != "":
		return leftOut("audio/"+p.Sound, len(p.Data), fate)
	}
	return leftOut(p.MIME, len(p.Data), fate)
}

// Noun returns what the part is: audio, file or image.
func (p Part) Noun() string {
	if p.Name != "" {
		return "file"
	}
	if p.Sound != "" {
		return "audio"
	}
	return "image"
}

// Document returns reference material in a frame that names its title and URI.
func (r Renderer) Document(d canister.Document) []Part {
	head := "<document"
	for _, attribute := range [][2]string{{"title", d.Title}, {"uri", d.URI}} {
		if attribute[1] != "" {
			head += " " + attribute[0] + `="` + strings.ReplaceAll(attribute[1], `"`, "'") + `"`
		}
	}
	parts := append([]Part{{Text: head + ">"}}, r.Parts(d.Content)...)
	return append(parts, Part{Text: "</document>"})
}

// inline returns an image whose data is in its URL as one with data.
func inline(c canister.ImageContent) canister.ImageContent {
	head, text, ok := strings.Cut(c.URL, ";base64,")
	if !ok || !strings.EqualFold(head[:min(len(head), len("data:"))], "data:") {
		return c
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return c
	}
	return canister.ImageContent{Data: data, MIME: head[len("data:"):]}
}

func (r Renderer) image(c canister.ImageContent) Part {
	c = inline(c)
	switch kind, is := mediaType(c.MIME), http.DetectContentType(c.Data); {
	case c.URL != "" && r.NoImages:
		return Part{Text: "[image " + shortURL(c.URL) + ", omitted: the model cannot see]"}
	case c.URL != "" && !fetched.MatchString(c.URL):
		return Part{Text: "[image " + shortURL(c.URL) + ", omitted: the model's server cannot fetch it]"}
	case c.URL != "" && r.Refused.has([]byte(c.URL)):
		return Part{Text: "[image " + shortURL(c.URL) + ", omitted: " + refusedMedia + "]"}
	case c.URL != "":
		return Part{URL: c.URL}
	case r.NoImages:
		return Part{Text: leftOut(c.MIME, len(c.Data), "the model cannot see")}
	case !imageTypes[kind] || len(c.Data) == 0: // servers would reject the whole history
		return Part{Text: leftOut(c.MIME, len(c.Data), "the model's API cannot carry it")}
	case !imageTypes[is]:
		return Part{Text: leftOut(c.MIME, len(c.Data), "its data is not an image")}
	case r.Refused.has(c.Data):
		return Part{Text: leftOut(is, len(c.Data), refusedMedia)}
	default:
		if why := r.Images.over(c.Data); why != "" {
			return Part{Text: leftOut(is, len(c.Data), why)}
		}
		return Part{Data: c.Data, MIME: is} // servers reject an image of another type than the declared one
	}
}

func (r Renderer) audio(c canister.AudioContent) Part {
	format := soundFormats[mediaType(c.MIME)]
	switch {
	case !r.Audio:
		return Part{Text: leftOut(c.MIME, len(c.Data), "the model cannot hear")}
	case format == "" || len(c.Data) == 0:
		return Part{Text: leftOut(c.MIME, len(c.Data), "the model's API cannot carry it")}
	}
	return Part{Data: c.Data, Sound: format}
}

// resource returns an embedded resource: its text, or its image or audio after a line
// with its URI.
func (r Renderer) resource(c canister.ResourceContent) []Part {
	kind := mediaType(c.MIME)
	if c.Blob == nil {
		head := "[resource " + c.URI
		if c.MIME != "" {
			head += ", " + c.MIME
		}
		return []Part{{Text: head + "]\n" + c.Text}}
	}
	name := Part{Text: "[resource " + c.URI + "]"}
	switch {
	case strings.HasPrefix(kind, "image/"):
		return []Part{name, r.image(canister.ImageContent{Data: c.Blob, MIME: c.MIME})}
	case strings.HasPrefix(kind, "audio/"):
		return []Part{name, r.audio(canister.AudioContent{Data: c.Blob, MIME: c.MIME})}
	case r.Files && !r.NoImages && kind == "application/pdf" && bytes.HasPrefix(c.Blob, []byte("%PDF-")) && r.Refused.has(c.Blob):
		return []Part{name, {Text: leftOut(kind, len(c.Blob), refusedMedia)}}
	case r.Files && !r.NoImages && kind == "application/pdf" && bytes.HasPrefix(c.Blob, []byte("%PDF-")):
		return []Part{name, {Name: fileName(c.URI), MIME: kind, Data: c.Blob}}
	}
	return []Part{{Text: strings.TrimSuffix(name.Text, "]") + ": " +
		strings.TrimPrefix(leftOut(c.MIME, len(c.Blob), "the model's API cannot carry it"), "[")}}
}

// linkLine describes a link to a resource.
func linkLine(c canister.LinkContent) string {
	line := "[link " + c.URI
	for _, text := range []string{c.Title, c.Name, c.Description, c.MIME} {
		if text != "" {
			line += ", " + text
		}
	}
	if c.Size != nil {
		line += fmt.Sprintf(", %d bytes", *c.Size)
	}
	return line + "]"
}

// leftOut returns the line for data that is not sent.
func leftOut(kind string, size int, why string) string {
	if kind == "" {
		kind = "data of unknown type"
	}
	return fmt.Sprintf("[%s, %s, omitted: %s]", kind, byteCount(size), why)
}

func byteCount(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1<<9)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// mediaType returns a media type in lower case, without its parameters.
func mediaType(text string) string {
	if kind, _, err := mime.ParseMediaType(text); err == nil {
		return kind
	}
	kind, _, _ := strings.Cut(text, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// shortURL returns a URL shortened for display, without the data of a data URL.
func shortURL(address string) string {
	if strings.HasPrefix(address, "data:") {
		head, _, _ := strings.Cut(address, ",")
		return textcut.Bytes(valid(head), 100)
	}
	return textcut.Bytes(valid(address), 2000)
}
