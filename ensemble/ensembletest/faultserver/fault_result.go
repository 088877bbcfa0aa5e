// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"strings"
)

// resultKinds returns the faults of the result of a call, after its effect.
func resultKinds() []kind {
	at := []Place{"after-effect"}
	return []kind{
		{Info{"huge-result", "The result is a text of Size bytes (64 MiB).",
			at, at}, hugeResult},
		{Info{"deep-result", "The result has structured content of Count levels (10000).",
			at, at}, deepResult},
		{Info{"unknown-content", "The result has a block of content of the type hologram, before a text.",
			at, at}, unknownContent},
	}
}

// say sets the result of the call.
func (o *occasion) say(result writer) bool {
	o.answer.result, o.answer.failure = result, nil
	return true
}

func hugeResult(o *occasion) bool { return o.say(bigResult(cmp.Or(o.rule.Size, 64<<20))) }

func deepResult(o *occasion) bool {
	levels := cmp.Or(o.rule.Count, 10_000)
	return o.say(text(`{"content":[{"type":"text","text":"deep"}],"structuredContent":` +
		strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) + "}"))
}

func unknownContent(o *occasion) bool {
	return o.say(text(`{"content":[{"type":"hologram","depth":3,"data":"AAAA"},{"type":"text","text":"a hologram"}]}`))
}
