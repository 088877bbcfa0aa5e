// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strconv"

	"github.com/consort-go/consort/internal/console/spending"
	"golang.org/x/net/html"
)

// The size of a chart, in units of its view box.
const (
	chartHeight = 120
	chartWidth  = 600
	barGap      = 0.2 // of the width of a bar
)

// svg returns an element of an image.
func svg(tag string, parts ...part) part {
	return func(parent *html.Node) {
		node := &html.Node{Type: html.ElementNode, Data: tag, Namespace: "svg"}
		group(parts...)(node)
		parent.AppendChild(node)
	}
}

// chart returns the tokens of each day as bars.
func chart(days []spending.Total) part {
	var most int64 = 1
	for i := range days {
		most = max(most, days[i].Tokens())
	}
	width := float64(chartWidth) / float64(max(1, len(days)))
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }
	var bars []part
	for i := range days {
		tokens := days[i].Tokens()
		if tokens <= 0 {
			continue
		}
		height := float64(tokens) / float64(most) * chartHeight
		bars = append(bars, svg("rect", attr("x", number(width*(float64(i)+barGap/2))), attr("y", number(chartHeight-height)),
			attr("width", number(width*(1-barGap))), attr("height", number(height)), class("bar"),
			svg("title", text(fmt.Sprintf("%s: %d tokens", days[i].Name, tokens)))))
	}
	if len(days) > 0 {
		at := strconv.Itoa(chartHeight + 16)
		bars = append(bars, svg("text", attr("x", "0"), attr("y", at), text(days[0].Name)),
			svg("text", attr("x", strconv.Itoa(chartWidth)), attr("y", at), attr("text-anchor", "end"), text(days[len(days)-1].Name)))
	}
	return svg("svg", attr("viewBox", fmt.Sprintf("0 0 %d %d", chartWidth, chartHeight+20)), attr("role", "img"),
		attr("aria-label", fmt.Sprintf("Tokens by day; at most %d in a day", most)), class("chart"), group(bars...))
}
