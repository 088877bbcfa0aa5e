// SPDX-License-Identifier: Apache-2.0

// Package decode turns the JSON of an MCP server into content, tools, resources,
// prompts and results. It reads leniently: one odd member does not cost the rest.
// Members without a field are kept in the metadata.
package decode
