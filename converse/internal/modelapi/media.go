// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/tidwall/gjson"
)

// Media are images and files, by the SHA-256 of their data or of their URL.
type Media map[[sha256.Size]byte]bool

// refusedMedia is the reason of a line that replaces an image or a file.
const refusedMedia = "the model's server has refused it"

// has reports whether data, or a URL, is one of them.
func (m Media) has(data []byte) bool { return len(m) > 0 && m[sha256.Sum256(data)] }

// Refused returns the images and files that the server has refused.
func (t *Transcript) Refused() Media { return t.refused }

// Omit makes the next request encode the whole history again, without images and files that
// the server has refused in the request with that body. Omit leaves out the one that the error
// names; the older half if there are too many; or all in the newest message that has any. It
// returns false if the error is about something else, or the body has none.
func (t *Transcript) Omit(failed *converse.ModelError, body []byte) bool {
	if failed.Code != converse.CodeImage {
		return false
	}
	messages := gjson.GetBytes(body, "messages")
	if !messages.Exists() {
		messages = gjson.GetBytes(body, "input") // Responses
	}
	refused := t.culprits(failed.Message, messages.Array())
	if len(refused) == 0 {
		return false
	}
	t.shrunk++
	if notDownloaded.MatchString(failed.Message) {
		t.passing = maps.Clone(t.passing)
		for _, key := range refused {
			if t.passing == nil {
				t.passing = Media{}
			}
			t.passing[key] = true
		}
	}
	t.omit(refused)
	return true
}

// lasting returns the images and files that the server will refuse again.
func (t *Transcript) lasting() Media {
	lasting := maps.Clone(t.refused)
	maps.DeleteFunc(lasting, func(key [sha256.Size]byte, _ bool) bool { return t.passing[key] })
	return lasting
}

// notDownloaded matches refusals of an image that the server may be able to download later.
var notDownloaded = regexp.MustCompile(`(?i)while downloading|failed to download`)

// omit makes the next requests leave out images and files, too.
func (t *Transcript) omit(refused [][sha256.Size]byte) {
	all := Media{} // the renderer of the last request has the other one
	maps.Copy(all, t.refused)
	for _, key := range refused {
		all[key] = true
	}
	if len(all) > len(t.refused) {
		t.refused = all
		t.marks, t.text = nil, nil
	}
}

// refusedSuffix ends the member of an answer's metadata with the images and files that the server
// has refused until then. It begins with the name of the package.
const refusedSuffix = ".media_refused"

// mark returns metadata with the images and files; see [Transcript.Note].
func (m Media) mark(s *Server) canister.Fields {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	text, _ := json.Marshal(list) // base64
	return s.Keep(s.Package+refusedSuffix, s.Model, text)
}

// Recall makes the next requests leave out the images and files that the server has refused before
// an answer of a history, according to the mark of [Transcript.Note]. The last mark has all of them.
func (t *Transcript) Recall(s *Server, history []canister.Canister) {
	var noted [][sha256.Size]byte
	for _, c := range slices.Backward(history) {
		answer, ok := c.(canister.Assistant)
		if !ok || len(answer.Metadata) == 0 {
			continue
		}
		var list [][]byte
		if kept := s.Kept(answer.Metadata, s.Package+refusedSuffix, s.Model); kept == nil || json.Unmarshal(kept, &list) != nil {
			continue
		}
		for _, key := range list {
			if len(key) == sha256.Size {
				noted = append(noted, [sha256.Size]byte(key))
			}
		}
		break
	}
	t.omit(noted)
	t.unnoted = len(t.refused)-len(t.passing) > len(noted)
}

var (
	// mediaPlace matches the place of a part in the errors of Anthropic, such as
	// messages.4.content.1.pdf.source.base64.data, and of OpenAI, such as
	// input[2].content[0].image_url.
	mediaPlace = regexp.MustCompile(`(?:messages|input)\W{1,2}(\d+)\W{1,2}(?:content|output)\W{1,2}(\d+)(?:\.tool_result\.content\.(\d+))?`)
	// addresses matches the URL of an image that the server has failed to download, which can end a sentence.
	addresses    = regexp.MustCompile(`https?://[^\s"'` + "`" + `]*[^\s"'` + "`" + `.,:]`)
	tooManyMedia = regexp.MustCompile(`(?i)too (much media|many images)|pdf pages`)
)

// culprits returns the images and files of messages to leave out after a refusal. After
// maxShrunk refusals, or if the model takes text alone, these are all.
func (t *Transcript) culprits(message string, messages []gjson.Result) [][sha256.Size]byte {
	var all, newest [][sha256.Size]byte
	for _, m := range messages {
		if media := t.mediaIn(m); len(media) > 0 {
			all, newest = append(all, media...), media
		}
	}
	if t.shrunk >= maxShrunk || textAlone.MatchString(message) {
		return all
	}
	for _, address := range addresses.FindAllString(message, -1) {
		if key := mediaKey("url", address); slices.Contains(all, key) {
			return [][sha256.Size]byte{key}
		}
	}
	if named := t.mediaIn(partAt(messages, mediaPlace.FindStringSubmatch(message))); len(named) > 0 {
		return named
	}
	if tooManyMedia.MatchString(message) {
		return all[:(len(all)+1)/2]
	}
	return newest
}

// partAt returns the part at the place that an error names.
func partAt(messages []gjson.Result, place []string) gjson.Result {
	if place == nil {
		return gjson.Result{}
	}
	at, err := strconv.Atoi(place[1])
	if err != nil || at >= len(messages) {
		return gjson.Result{}
	}
	part := messages[at].Get("content." + place[2])
	if !part.Exists() {
		part = messages[at].Get("output." + place[2])
	}
	if place[3] != "" {
		part = part.Get("content." + place[3])
	}
	return part
}

// mediaIn returns the images and files in a value of a body that are not refused yet, in
// their order.
func (t *Transcript) mediaIn(value gjson.Result) (found [][sha256.Size]byte) {
	kind := value.Get("type").Str
	switch {
	case value.IsObject() && slices.Contains([]string{"image", "document", "image_url", "input_image", "input_file"}, kind):
		for _, path := range []string{"source.data", "source.url", "image_url.url", "image_url", "file_data"} {
			if text := value.Get(path); text.Type == gjson.String {
				if key := mediaKey(path, text.Str); !t.refused[key] {
					found = append(found, key)
				}
			}
		}
	case value.IsArray() || value.IsObject() && kind != "tool_use" && kind != "function_call":
		value.ForEach(func(_, member gjson.Result) bool {
			found = append(found, t.mediaIn(member)...)
			return true
		})
	}
	return found
}

// mediaKey returns the key in [Media] of a part's data, in base64 or in a data URL, or URL.
func mediaKey(path, text string) [sha256.Size]byte {
	encoded, inURL := text, false
	if strings.HasPrefix(text, "data:") {
		_, encoded, inURL = strings.Cut(text, ";base64,")
	}
	if inURL || path == "source.data" {
		if data, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return sha256.Sum256(data)
		}
	}
	return sha256.Sum256([]byte(text))
}
