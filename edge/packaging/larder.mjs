#!/usr/bin/env node
// `npx larder COMMAND` in a checkout: the commands of both packages, compiled if a source is newer than the last build.
// Only the command writes to stdout. Plain JavaScript, because it runs before anything is compiled.
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')

/** Commands by heading: name, program (with its first argument), flags of Node, configuration, summary. */
const groups = ['cloud/packaging/cloud.json', 'edge/packaging/hub.json'].flatMap((file) => {
  const { name, commands, nouns } = JSON.parse(readFileSync(join(root, file), 'utf8'))
  const own = Object.entries(nouns?.groups ?? {}).map(([heading, group]) => [
    heading,
    Object.entries(group).map(([noun, summary]) => [noun, `${nouns.program}:${noun}`, '-', '', summary]),
  ])
  return [[name, commands], ...own]
})
const commands = groups.flatMap(([, each]) => each)

function usage() {
  const width = Math.max(...commands.map(([name]) => name.length)) + 2
  const lines = groups.map(([heading, own]) =>
    [`${heading}:`, ...own.map(([command, , , , summary]) => `  ${command.padEnd(width)}${summary}`)].join(
      '\n',
    ),
  )
  return `Usage: npx larder COMMAND [ARGUMENTS]\n\n${lines.join('\n\n')}\n\nlarder COMMAND --help lists its verbs, larder COMMAND VERB --help their options; larder --version prints the version.\n`
}

/** Whether a source is newer than the last build. Pages are made by `npm run build`, too. */
function isStale() {
  let built
  try {
    built = statSync(join(root, '.build/build.json')).mtimeMs
  } catch {
    return true
  }
  const newer = (folder) =>
    readdirSync(folder, { withFileTypes: true }).some((entry) => {
      if (entry.name === 'node_modules' || entry.name.startsWith('.')) return false
      const path = join(folder, entry.name)
      return entry.isDirectory() ? newer(path) : statSync(path).mtimeMs > built
    })
  return ['cloud', 'edge', 'protocol', 'simulator'].some((room) => newer(join(root, room)))
}

function build() {
  if (!isStale()) return
  process.stderr.write('Building…\n')
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], {
    cwd: root,
    stdio: ['ignore', process.stderr, 'inherit'],
  })
  if (status !== 0) process.exit(1)
}

/** The closest command name: a unique prefix, or a name with at most a quarter of its letters wrong. */
function nearest(given) {
  const names = commands.map(([name]) => name)
  const begun = names.filter((name) => given.length > 1 && name.startsWith(given))
  if (begun.length === 1) return begun[0]
  const distance = (a, b) => {
    let row = Array.from({ length: b.length + 1 }, (_, index) => index)
    for (let i = 1; i <= a.length; i += 1) {
      const next = [i]
      for (let j = 1; j <= b.length; j += 1)
        next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)))
      row = next
    }
    return row[b.length]
  }
  return names.find((name) => distance(given, name) <= Math.ceil(name.length / 4))
}

const [given, ...args] = process.argv.slice(2)

/** The command of a name. If both packages have it, the first argument may name the package: `doctor hub`. */
function find(name) {
  const found = commands.filter(([command]) => command === name)
  const part = found.length > 1 ? ['cloud', 'hub'].indexOf(args[0]) : -1
  if (part !== -1) args.shift()
  return found[Math.max(part, 0)]
}
if (given === undefined) {
  process.stderr.write(usage())
  process.exitCode = 2
} else if (given === '--help' || given === '-h') process.stdout.write(usage())
else {
  const command = given === '--version' ? commands[0] : find(given)
  if (!command) {
    const meant = nearest(given)
    process.stderr.write(
      `error: no such command: ${given}${meant === undefined ? '' : `; did you mean ${meant}?`}; --help lists them\n`,
    )
    process.exitCode = 2
  } else {
    build()
    const [, program, flags] = command
    const [file, first] = program.split(':')
    const own = given === '--version' ? ['--version'] : [...(first === undefined ? [] : [first]), ...args]
    const nodeFlags = flags === '-' ? [] : flags.split(',')
    const compiled = join(root, '.build', file)
    const child = spawn(process.execPath, [...nodeFlags, compiled, ...own], { stdio: 'inherit' })
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
    child.on('exit', (code, signal) => {
      process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1)
    })
  }
}
