// SPDX-License-Identifier: Apache-2.0

// Package browser contains only tests. They open the console in Chromium: each page at three
// widths, without violations that axe-core finds and as the golden files have it, and pages
// with hostile texts, of which no script runs and no request leaves.
//
// The tests need Debian's chromium, and axe-core, which .ci/install-servers installs. What
// drives the browser is in the module of package observed, so that the library does not
// require it. Screenshots go to .ci/out/console.
package browser
