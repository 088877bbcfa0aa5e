// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"fmt"
	"strings"
)

// listKinds returns the faults of the list of tools. The tools of every server remain
// in the list.
func listKinds() []kind {
	at := []Place{"list"}
	return []kind{
		{Info{"huge-schema", "There is one more tool, huge_schema, whose schema has Size bytes (1 MiB).",
			at, at}, hugeSchema},
		{Info{"deep-schema", "There is one more tool, deep_schema, whose schema has Count levels (10000).",
			at, at}, deepSchema},
		{Info{"many-tools", "There are Count more tools (5000): many_1, many_2 and so on.",
			at, at}, manyTools},
		{Info{"endless-pages", "Each page of the list names a next page, with one more tool: page_1, page_2 and so on.",
			at, at}, endlessPages},
		{Info{"cursor-loop", "Each page of the list names the same next page, which has the same tools.",
			at, at}, cursorLoop},
	}
}

func (o *occasion) addTool(name, schema string) bool {
	o.listing.tools = append(o.listing.tools, extraTool(name, schema))
	return true
}

func hugeSchema(o *occasion) bool {
	var schema strings.Builder
	schema.WriteString(`{"type":"object","properties":{"p":{"type":"string"}`)
	for i := 0; int64(schema.Len()) < cmp.Or(o.rule.Size, 1<<20); i++ {
		fmt.Fprintf(&schema, `,"property_%d":{"type":"string","description":"One of far too many properties."}`, i)
	}
	schema.WriteString(`}}`)
	return o.addTool("huge_schema", schema.String())
}

func deepSchema(o *occasion) bool {
	levels := cmp.Or(o.rule.Count, 10_000)
	schema := strings.Repeat(`{"type":"object","properties":{"a":`, levels) + `{"type":"string"}` + strings.Repeat(`}}`, levels)
	return o.addTool("deep_schema", schema)
}

func manyTools(o *occasion) bool {
	for i := range cmp.Or(o.rule.Count, 5000) {
		o.addTool(fmt.Sprintf("many_%d", i+1), `{"type":"object","properties":{}}`)
	}
	return true
}

func endlessPages(o *occasion) bool {
	o.listing.next = endlessCursor + "1"
	return true
}

func cursorLoop(o *occasion) bool {
	o.listing.next = loopCursor
	return true
}
