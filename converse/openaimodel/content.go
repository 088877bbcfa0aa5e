// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"encoding/base64"
	"fmt"
	"mime"
	"regexp"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/jsontext"
	"github.com/consort-go/consort/internal/repeated"
	"github.com/consort-go/consort/internal/textcut"
)

// part is one part of a message's content: text, an image or audio.
type part struct {
	text  string
	url   string // of an image; the server downloads it
	data  []byte // of an image or of audio
	mime  string // of data, for an image
	sound string // the format of data, for audio
}

// append appends the part in the form of the API.
func (p part) append(dst []byte) []byte {
	dst = append(dst, '{')
	switch {
	case p.sound != "":
		dst = append(jsontext.AppendMember(dst, "type", "input_audio"), `,"input_audio":{"data":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, p.data)
		dst = append(jsontext.AppendMember(append(dst, '"'), "format", p.sound), '}')
	case p.mime != "":
		dst = append(jsontext.AppendMember(dst, "type", "image_url"), `,"image_url":{"url":"data:`...)
		dst = append(append(dst, p.mime...), ";base64,"...) // one of imageTypes
		dst = append(base64.StdEncoding.AppendEncode(dst, p.data), `"}`...)
	case p.url != "":
		dst = append(jsontext.AppendMember(dst, "type", "image_url"), `,"image_url":{`...)
		dst = append(jsontext.AppendMember(dst, "url", p.url), '}')
	default:
		dst = jsontext.AppendMember(dst, "type", "text")
		dst = jsontext.AppendMember(dst, "text", p.text)
	}
	return append(dst, '}')
}

// isText reports whether the part is text.
func (p part) isText() bool { return p.sound == "" && p.mime == "" && p.url == "" }

// onlyText returns the texts of parts, joined by newlines, if all of them are text.
func onlyText(parts []part) (string, bool) {
	if len(parts) == 1 && parts[0].isText() {
		return parts[0].text, true
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if !p.isText() {
			return "", false
		}
		texts[i] = p.text
	}
	return strings.Join(texts, "\n"), true
}

// fetched matches the image URLs that servers accept.
var fetched = regexp.MustCompile(`(?i)^(https?://|data:image/)`)

// imageTypes are the image types that the API accepts.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// soundFormats are the audio formats of the API, by media type.
var soundFormats = map[string]string{
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
	"audio/mpeg": "mp3", "audio/mp3": "mp3",
}

// render returns contents as parts. Content that the API cannot carry becomes a line of
// text; nothing is dropped silently.
func (w *messageWriter) render(contents []canister.Content) []part {
	parts := make([]part, 0, len(contents))
	for _, c := range contents {
		parts = append(parts, w.renderOne(c)...)
	}
	return parts
}

func (w *messageWriter) renderOne(c canister.Content) []part {
	switch c := c.(type) {
	case canister.TextContent:
		return []part{{text: c.Text}}
	case canister.ImageContent:
		return []part{w.image(c)}
	case canister.AudioContent:
		return []part{w.audio(c)}
	case canister.ResourceContent:
		return w.resource(c)
	case canister.LinkContent:
		return []part{{text: linkLine(c)}}
	case canister.StructuredContent:
		return []part{{text: string(c.JSON)}}
	}
	return []part{{text: fmt.Sprintf("[%T, left out: not known here]", c)}}
}

// lines returns contents as text, for messages that can only contain text.
func (w *messageWriter) lines(contents []canister.Content) string {
	if len(contents) == 1 {
		if text, ok := contents[0].(canister.TextContent); ok {
			return text.Text
		}
	}
	texts := make([]string, 0, len(contents))
	for _, p := range w.render(contents) {
		texts = append(texts, p.line("such a message carries text alone"))
	}
	return strings.Join(texts, "\n")
}

// line returns the text of a part. For other parts it returns a line that describes the
// part and gives the reason why it was left out.
func (p part) line(fate string) string {
	switch {
	case p.isText():
		return p.text
	case p.url != "":
		return "[image " + shortURL(p.url) + ", left out: " + fate + "]"
	case p.sound != "":
		return leftOut("audio/"+p.sound, len(p.data), fate)
	}
	return leftOut(p.mime, len(p.data), fate)
}

// result returns the text of a tool message, which can only contain text, and the parts
// for the user message that follows.
func (w *messageWriter) result(call canister.Invocation, r canister.Result) (string, []part) {
	if len(r.Content) == 1 {
		if text, ok := r.Content[0].(canister.TextContent); ok && text.Text != "" {
			return text.Text, nil
		}
	}
	var texts []string
	var shown []part
	for _, c := range repeated.Without(r.Content) {
		for _, p := range w.renderOne(c) {
			if p.isText() {
				texts = append(texts, p.text)
				continue
			}
			label := fmt.Sprintf("%s %d of the result of call %s (%s)", p.noun(), len(shown)/2+1, callID(call), legalName(call.Name))
			texts = append(texts, "["+label+" follows in the next user message]")
			shown = append(shown, part{text: "[" + label + "]"}, p)
		}
	}
	if text := strings.Join(texts, "\n"); text != "" {
		return text, shown
	}
	if r.Failed() {
		return "[the call failed without a word: " + r.Code + "]", nil
	}
	return "[the tool succeeded and returned nothing]", nil
}

func (p part) noun() string {
	if p.sound != "" {
		return "audio"
	}
	return "image"
}

// document returns reference material in a frame that names its title and URI.
func (w *messageWriter) document(d canister.Document) []part {
	head := "<document"
	for _, attribute := range [][2]string{{"title", d.Title}, {"uri", d.URI}} {
		if attribute[1] != "" {
			head += " " + attribute[0] + `="` + strings.ReplaceAll(attribute[1], `"`, "'") + `"`
		}
	}
	parts := append([]part{{text: head + ">"}}, w.render(d.Content)...)
	return append(parts, part{text: "</document>"})
}

func (w *messageWriter) image(c canister.ImageContent) part {
	switch kind := mediaType(c.MIME); {
	case c.URL != "" && w.m.opts.NoImages:
		return part{text: "[image " + shortURL(c.URL) + ", left out: the model cannot see]"}
	case c.URL != "" && !fetched.MatchString(c.URL):
		return part{text: "[image " + shortURL(c.URL) + ", left out: the model's server cannot fetch it]"}
	case c.URL != "":
		return part{url: c.URL}
	case w.m.opts.NoImages:
		return part{text: leftOut(c.MIME, len(c.Data), "the model cannot see")}
	case !imageTypes[kind] || len(c.Data) == 0: // servers would reject the whole history
		return part{text: leftOut(c.MIME, len(c.Data), "the model's API cannot carry it")}
	default:
		return part{data: c.Data, mime: kind}
	}
}

func (w *messageWriter) audio(c canister.AudioContent) part {
	format := soundFormats[mediaType(c.MIME)]
	switch {
	case !w.m.opts.Audio:
		return part{text: leftOut(c.MIME, len(c.Data), "the model cannot hear")}
	case format == "" || len(c.Data) == 0:
		return part{text: leftOut(c.MIME, len(c.Data), "the model's API cannot carry it")}
	}
	return part{data: c.Data, sound: format}
}

// resource returns an embedded resource: its text, or its image or audio after a line
// with its URI.
func (w *messageWriter) resource(c canister.ResourceContent) []part {
	kind := mediaType(c.MIME)
	if c.Blob == nil {
		head := "[resource " + c.URI
		if c.MIME != "" {
			head += ", " + c.MIME
		}
		return []part{{text: head + "]\n" + c.Text}}
	}
	name := part{text: "[resource " + c.URI + "]"}
	switch {
	case strings.HasPrefix(kind, "image/"):
		return []part{name, w.image(canister.ImageContent{Data: c.Blob, MIME: c.MIME})}
	case strings.HasPrefix(kind, "audio/"):
		return []part{name, w.audio(canister.AudioContent{Data: c.Blob, MIME: c.MIME})}
	}
	return []part{{text: strings.TrimSuffix(name.text, "]") + ": " +
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
		kind = "data of no known type"
	}
	return fmt.Sprintf("[%s, %s, left out: %s]", kind, byteCount(size), why)
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
func shortURL(url string) string {
	if strings.HasPrefix(url, "data:") {
		head, _, _ := strings.Cut(url, ",")
		return textcut.Bytes(valid(head), 100)
	}
	return textcut.Bytes(valid(url), 2000)
}
