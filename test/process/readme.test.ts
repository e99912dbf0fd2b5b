import { spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandsOf, readManifest } from '../../edge/packaging/manifest.ts'
import { cloudSettings } from '../../cloud/platform/settings/config.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { readConfig } from '../../edge/config.ts'
import { readManagementConfig } from '../../edge/management/config.ts'
import { settingsIn } from '../../protocol/model/program-settings.ts'
import { commandOf } from '../support/programs.ts'

const root = resolve(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
/** The fenced blocks of README without a language, except the picture at its beginning. Those with one need a running service. */
const blocks = [...readme.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
  .filter(([, language]) => language === '')
  .map((match) => match[2]!)
  .slice(1)

let folder: string
const at = (...parts: string[]): string => join(folder, ...parts)

/** Stand-ins for the programs in README: ours run; installers, editors and service managers are simulated. */
function layOut(): void {
  for (const name of ['bin', 'etc', 'edited']) mkdirSync(at(name))
  const script = (name: string, text: string) =>
    writeFileSync(at('bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const calls = (['cloud', 'hub'] as const).flatMap((part) =>
    commandsOf(readManifest(root, part)).map(([name, program, , configuration]) => {
      const [file, subcommand = ''] = program.split(':')
      const command = commandOf(file!.replace(/\.js$/, '')).join(' ')
      const config = at('etc', configuration.slice('/etc/larder/'.length))
      return `${name}) shift; exec ${command} ${subcommand} "$@" --config ${config} ;;`
    }),
  )
  script('larder', `case "$1" in\n${calls.join('\n')}\nesac\necho "no such command: $1" >&2; exit 2`)
  script('editor', `cp ${at('edited')}/"$(basename "$1")" ${at('etc')}/`)
  for (const name of ['apt', 'systemctl', 'npm']) script(name, `echo "${name} $*" >> ${at('played')}`)
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-readme-'))
  layOut()
  copyFileSync(join(root, 'cloud/packaging/etc/cloud.json'), at('edited/cloud.json'))
  for (const name of ['hub', 'management'])
    copyFileSync(join(root, `edge/packaging/etc/${name}.json`), at(`etc/${name}.json`))
  copyFileSync(join(root, 'edge/packaging/etc/management.json'), at('edited/management.json'))
  copyFileSync(join(root, 'simulator/hardware/demo-hub.json'), at('edited/hardware.json'))
  copyFileSync(join(root, 'simulator/hardware/demo-hub.json'), at('hardware.json'))
  const product = /is a list of `(\{[^`]*\})`/.exec(readme)?.[1]
  writeFileSync(at('products.json'), `[${product}]`)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const environment = () => ({
  PATH: `${at('bin')}:/usr/bin:/bin`,
  DATA_DIR: at('cloud'),
  STORE: at('hub.sqlite'),
  HARDWARE: at('etc/hardware.json'),
  AUTHORIZED_KEYS: at('etc/authorized_keys'),
})

/** Runs a block in a shell that ends at the first failure; returns its output and exit status. */
function run(block: string): Promise<{ status: number | null; output: string }> {
  return new Promise((done) => {
    const shell = spawn('sh', ['-eu'], { cwd: folder, env: environment() })
    let output = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
    shell.once('close', (status) => done({ status, output }))
    shell.stdin.end(block)
  })
}

const field = (output: string, name: string): string =>
  new RegExp(`"${name}": "?([^",\\n]+)`).exec(output)?.[1] ?? ''

test('every command of README runs as written, in order', { timeout: 240_000 }, async () => {
  let hostKey = ''
  for (const block of blocks) {
    if (/^[A-Z_]+=/.test(block)) continue
    // Replaces placeholders by values that were printed before.
    const { status, output } = await run(block.replace('ssh-ed25519 …', hostKey))
    // The block prints a hub's number and password, and the next block needs them.
    const password = field(output, 'mqtt_password')
    if (password !== '') {
      expect(field(output, 'hub_id')).toBe('1')
      expect(output).not.toContain('to_do')
      const hub = JSON.parse(readFileSync(at('etc/hub.json'), 'utf8')) as object
      writeFileSync(at('edited/hub.json'), JSON.stringify({ ...hub, MQTT_PASSWORD: password }))
    }
    if (block.includes('--host-key') && hostKey === '') {
      // The file of keys cannot exist before the cloud has printed its own key.
      expect(existsSync(at('etc/authorized_keys'))).toBe(false)
      const first = await run(block.split('\n')[0]!)
      hostKey = field(first.output, 'host_key')
      const rest = await run(block.split('\n')[1]!.replace('ssh-ed25519 …', hostKey))
      writeFileSync(at('edited/authorized_keys'), `${field(rest.output, 'cloud_key')}\n`)
      const whole = await run(block.replace('ssh-ed25519 …', hostKey))
      expect([whole.output, whole.status]).toEqual([whole.output, 0])
      continue
    }
    expect([block, output, status]).toEqual([block, output, 0])
  }

  const scripts = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object })
    .scripts
  for (const [, name = ''] of readFileSync(at('played'), 'utf8').matchAll(/^npm (?:run )?(?!ci)(\S+)/gm))
    expect([name, name in scripts]).toEqual([name, true])

  const db = openDatabase({ url: `sqlite:${at('cloud/larder.sqlite')}` })
  const q = db.kysely
  expect(await q.selectFrom('hubs').select(['id', 'name']).execute()).toEqual([
    { id: 1, name: 'Central Station' },
  ])
  expect(await q.selectFrom('products').select(['name', 'quantity']).execute()).toEqual([
    { name: 'Cola', quantity: 8 },
  ])
  expect(await q.selectFrom('api_keys').select('name').execute()).toEqual([{ name: 'till' }])
  expect(await q.selectFrom('hub_management').select('host').execute()).toEqual([{ host: 'hub1.example' }])
  await db.close()
  // The services start with the edited files.
  const own = { ...environment(), GPIO: 'none' }
  expect(readConfig(['--config', at('etc/hub.json')], own)).toMatchObject({ kind: 'config' })
  expect(readManagementConfig(['--config', at('etc/management.json')], own)).toMatchObject({
    kind: 'config',
    task: 'serve',
  })
})

test('every setting and every script in README exists', () => {
  const known = new Set(settingsIn(cloudSettings).keys())
  const assigned = blocks.filter((block) => /^[A-Z_]+=/.test(block)).flatMap((block) => block.split('\n'))
  for (const line of assigned.filter((text) => text !== ''))
    expect([line, known.has(line.slice(0, line.indexOf('=')))]).toEqual([line, true])
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  for (const [, name = ''] of readme.matchAll(/npm run ([a-z-]+)/g))
    expect([name, name in scripts]).toEqual([name, true])
})
