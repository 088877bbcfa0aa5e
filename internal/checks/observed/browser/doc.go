// SPDX-License-Identifier: Apache-2.0

// Package browser contains only tests. They open each page of the console in Chromium at three
// widths, compare it with a golden file, and let axe-core check that it is accessible. On pages
// with hostile texts, no script may run and no request may leave.
//
// The tests need Debian's chromium, and axe-core, which .ci/install-servers installs. What
// drives the browser is in the module of package observed, so that the library does not
// require it. Screenshots go to .ci/out/console.
package browser
