#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// Starts the program of this platform, which is in an optional dependency of this package.
"use strict";
const { spawn } = require("node:child_process");
const os = require("node:os");
const tty = require("node:tty");

const name = `@consort-go/consort-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "consort.exe" : "consort";
let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(`consort: the package ${name} is not installed. Install @consort-go/consort again without --omit=optional; ` +
    "if there is no such package, build the program with Go: go install github.com/consort-go/consort/cmd/consort@latest");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// Ctrl-C reaches the program itself, because it is in the foreground of the same terminal;
// this process only has to stay. It has a terminal if one of its streams is one. Other signals
// are for this process, so it passes them on; but not on Windows, where the program gets
// all events of the console itself, and kill would end it without closing.
const isWindows = process.platform === "win32";
const onTerminal = [0, 1, 2].some((fd) => tty.isatty(fd));
for (const signal of ["SIGINT", "SIGQUIT"]) {
  process.on(signal, () => isWindows || onTerminal || child.kill(signal));
}
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => isWindows || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`consort: ${error.message}`);
  process.exit(1);
});
child.on("exit", (status, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : status));
