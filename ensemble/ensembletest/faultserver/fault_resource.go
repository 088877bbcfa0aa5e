// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"io"
)

// resourceKinds returns the faults of reading a resource.
func resourceKinds() []kind {
	at := []Place{"read"}
	return []kind{
		{Info{"hanging-read", "The request to read the resource is never answered.",
			at, at}, func(o *occasion) bool { return o.hang() }},
		{Info{"vanished-resource", "The resource that was listed is not found (error -32002).",
			at, at}, vanishedResource},
		{Info{"huge-resource", "The resource is a text of Size bytes (64 MiB).",
			at, at}, hugeResource},
		{Info{"resources-changed-storm", "Count notifications (1000) of a changed list of resources are sent first.",
			at, at}, resourcesChangedStorm},
	}
}

// noteURI is the URI of the resource that every server has.
const noteURI = "fault://note"

func vanishedResource(o *occasion) bool {
	o.answer.result, o.answer.failure = nil, failf(codeResourceNotFound, "unknown resource %q", noteURI).failure
	return true
}

func hugeResource(o *occasion) bool {
	size := cmp.Or(o.rule.Size, 64<<20)
	return o.say(func(w io.Writer) error {
		if _, err := io.WriteString(w, `{"contents":[{"uri":`+quote(noteURI)+`,"text":"`); err != nil {
			return err
		}
		if err := fill(w, size); err != nil {
			return err
		}
		_, err := io.WriteString(w, `"}]}`)
		return err
	})
}

func resourcesChangedStorm(o *occasion) bool {
	changed := notification("notifications/resources/list_changed", "{}")
	return o.storm(cmp.Or(o.rule.Count, 1000), func(int) writer { return changed })
}

// resources answers resources/list; read answers resources/read.
func resources() *answer {
	return &answer{result: text(`{"resources":[{"uri":` + quote(noteURI) + `,"name":"note","mimeType":"text/plain"}]}`)}
}

func (x *exchange) read() *answer {
	if x.request.Params.URI != noteURI {
		return failf(codeResourceNotFound, "unknown resource %q", x.request.Params.URI)
	}
	return &answer{result: text(`{"contents":[{"uri":` + quote(noteURI) + `,"mimeType":"text/plain","text":"a note"}]}`)}
}
