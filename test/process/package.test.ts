import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import type { PaymentResult } from '../../protocol/contract/consumer-payments.ts'
import type { Order } from '../../protocol/contract/consumer-orders.ts'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { missing, service } from '../support/services.ts'
import { commandOf, packageRoot } from '../support/programs.ts'
import { freePorts } from '../support/ports.ts'
import { residentMb } from '../bench/process-figures.ts'

/** Limits in megabytes: a package of either kind, and a hub's installed size and memory. */
const PACKAGE_MB = 50
const HUB_INSTALLED_MB = 130
const HUB_RESIDENT_MB = 80

const folder = mkdtempSync(join(tmpdir(), 'larder-packages-'))
const roots = { hub: join(folder, 'hub'), cloud: join(folder, 'cloud') }
/** The programs that every Debian has, and no Node. */
const PATH = join(folder, 'essential')
const essential = ['sh', 'dirname', 'readlink', 'cat', 'id', 'tr', 'perl', 'setpriv']
const key = join(folder, 'signing-key')
const started: ChildProcess[] = []

const command = (name: keyof typeof roots): string => join(roots[name], 'usr/lib/larder', name, 'larder')

function larder(name: keyof typeof roots, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(command(name), args, {
    encoding: 'utf8',
    env: { PATH },
    cwd: folder,
  })
  return { status, stdout, stderr }
}

/** Output of a command of the cloud's package. */
function asked(...args: string[]): unknown {
  const { stdout, stderr } = larder('cloud', ...args, '--config', join(folder, 'cloud.json'))
  if (stderr !== '') throw new Error(stderr)
  return JSON.parse(stdout)
}

function start(program: string, args: string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  started.push(child)
  return child
}

const filesBelow = (root: string): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(root, path)).isFile(),
  )

const control = (name: keyof typeof roots, field: string): string =>
  execFileSync('dpkg-deb', ['--field', debianOf(name), field], { encoding: 'utf8' }).trim()

const debianOf = (name: keyof typeof roots): string =>
  join(
    folder,
    readdirSync(folder).find((file) => file.startsWith(`larder-${name}_`) && file.endsWith('.deb'))!,
  )

beforeAll(() => {
  if (missing('packages') !== undefined) return
  mkdirSync(PATH)
  for (const tool of essential)
    symlinkSync(execFileSync('which', [tool], { encoding: 'utf8' }).trim(), join(PATH, tool))
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
  for (const name of ['hub', 'cloud'] as const) {
    const [node, ...program] = commandOf('edge/packaging/main')
    execFileSync(node, [...program, name, '--sign', key, '--out', folder], {
      cwd: packageRoot(),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    execFileSync('dpkg-deb', ['--extract', debianOf(name), roots[name]])
  }
}, 1_800_000)

afterAll(async () => {
  for (const child of started.filter(
    ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
  )) {
    child.kill('SIGTERM')
    await new Promise((resolve) => child.once('exit', resolve))
  }
  rmSync(folder, { recursive: true, force: true })
})

const inPackages = service('packages')

inPackages('the hub’s package contains its page, and none of the page’s build tools', () => {
  const program = join(roots.hub, 'usr/lib/larder/hub')
  const assets = readdirSync(join(program, 'edge/local-api/assets'))
  expect(assets).toEqual(expect.arrayContaining(['index.html', 'index.html.br', 'index.html.gz']))
  expect(readdirSync(join(program, 'edge/local-api'))).toEqual(['assets'])
  const held = [...readdirSync(join(program, 'node_modules')), ...readdirSync(join(program, 'licences'))]
  for (const name of ['preact', 'vite', 'lucide', 'tailwindcss', 'daisyui']) expect(held).not.toContain(name)
})

inPackages('a hub’s programs are a few files, with only native packages beside them', () => {
  const program = join(roots.hub, 'usr/lib/larder/hub')
  const scripts = filesBelow(program).filter(
    (path) => /^(edge|protocol)\/.*\.js$/.test(path) && !/\/assets\//.test(path),
  )
  expect(scripts).toEqual(expect.arrayContaining(['edge/main.js', 'edge/management/main.js']))
  expect(scripts.length).toBeLessThan(60)
  for (const name of ['zod', 'mqtt', 'pino', 'hono', 'serialport'])
    expect(readdirSync(join(program, 'node_modules'))).not.toContain(name)
})

describe.each(['hub', 'cloud'] as const)('the package of the %s', (name) => {
  inPackages(
    'the Debian package declares its dependencies, and only its own user can read its configuration',
    () => {
      for (const field of ['Depends', 'Recommends']) expect(control(name, field)).not.toContain('nodejs')
      expect(control(name, 'Version')).toMatch(/^\d{4}\.\d{1,2}\.\d{1,2}\+[0-9a-f]{7}$/)
      expect(control(name, 'Depends')).toMatch(/libc6 \(>= 2\.\d+\)/)
      const configuration = execFileSync('dpkg-deb', ['--info', debianOf(name), 'conffiles'], {
        encoding: 'utf8',
      })
      const files = configuration.trim().split('\n')
      expect(files.length).toBeGreaterThan(0)
      for (const file of files) expect(statSync(join(roots[name], file)).mode & 0o777).toBe(0o640)
    },
  )

  inPackages('the Debian package contains no development dependency', () => {
    const idle = filesBelow(roots[name]).filter(
      (path) =>
        /\.(ts|map|gyp|cc?|cpp|h|o|a)$|(^|\/)(node-pty|typescript|vitest|prebuild-install|nan)\//.test(
          path,
        ) || /(cloud\/demo|edge\/packaging)\//.test(path),
    )
    expect(idle).toEqual([])
  })

  inPackages('the Debian package contains the licences of its parts', () => {
    const program = join(roots[name], 'usr/lib/larder', name)
    const licences = filesBelow(program).filter((path) => /^licen[cs]e/i.test(basename(path)))
    expect(licences.length).toBeGreaterThan(50)
    const bundled = name === 'hub' ? ['zod', 'mqtt', 'pino', 'hono', 'serialport', 'prom-client'] : []
    for (const one of bundled)
      expect(readdirSync(join(program, 'licences', one)).join()).toMatch(/licen[cs]e/i)
  })

  inPackages('the units of the Debian package have few privileges', () => {
    const units = join(roots[name], 'usr/lib/systemd/system')
    for (const unit of readdirSync(units)) {
      const args = ['security', '--offline=true', '--threshold=40', '--no-pager', join(units, unit)]
      expect([unit, spawnSync('systemd-analyze', args).status]).toEqual([unit, 0])
    }
  })

  inPackages('the command of the Debian package lists its subcommands', () => {
    const help = larder(name, '--help')
    expect(help).toMatchObject({ status: 0, stderr: '' })
    expect(help.stdout).toMatch(
      name === 'hub'
        ? /\n {2}edge .*\n {2}management /
        : /\n {2}cloud .*\n {2}doctor .*\n {2}broker-check .*\n\nAdministration.*\n {2}alarms /,
    )
    expect(larder(name, '--version').stdout).toMatch(
      /^larder-(hub|cloud) \d{4}\.\d+\.\d+\+[0-9a-f]{7} \(Node 24\.\d+\.\d+\)\n$/,
    )
    expect(larder(name, 'nonsense')).toEqual({
      status: 2,
      stdout: '',
      stderr: `larder: no such command: nonsense\n\n${help.stdout}`,
    })
    expect(larder(name)).toEqual({ status: 2, stdout: '', stderr: help.stdout })
  })

  inPackages('the list of parts names Node and each package inside, with its checksum', () => {
    const { components } = JSON.parse(readFileSync(debianOf(name).replace(/deb$/, 'cdx.json'), 'utf8')) as {
      components: { name: string; version: string; hashes?: object[] }[]
    }
    expect(components[0]).toMatchObject({ name: 'node', version: expect.stringMatching(/^24\./) as string })
    const names = components.map((each) => each.name)
    expect(names).toEqual(expect.arrayContaining(['zod', 'better-sqlite3', 'mqtt']))
    expect(names).not.toContain('vitest')
    expect(components.slice(1).filter(({ hashes }) => hashes?.length !== 1)).toEqual([])
  })

  inPackages('the packages are small', () => {
    expect(statSync(debianOf(name)).size / 1e6).toBeLessThan(PACKAGE_MB)
    expect(statSync(debianOf(name).replace(/deb$/, 'tar.gz')).size / 1e6).toBeLessThan(PACKAGE_MB)
  })
})

inPackages('tools of Debian verify the checksums and signatures of all files', () => {
  const signers = join(folder, 'signers')
  writeFileSync(signers, `larder ${readFileSync(`${key}.pub`, 'utf8')}`)
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: folder })
  const verify = (file: string, input: Buffer): number | null =>
    spawnSync(
      'ssh-keygen',
      ['-Y', 'verify', '-f', signers, '-I', 'larder', '-n', 'larder', '-s', `${file}.sig`],
      {
        input,
      },
    ).status
  const files = readdirSync(folder).filter((file) => /^(larder-.*\.(deb|gz|json)|SHA256SUMS)$/.test(file))
  expect(files).toHaveLength(7)
  for (const file of files) {
    const path = join(folder, file)
    expect([file, verify(path, readFileSync(path))]).toEqual([file, 0])
    expect([file, verify(path, Buffer.from('forged'))]).toEqual([file, 255])
  }
})

inPackages('an installed hub needs little space and memory', () => {
  const kilobytes = Number(execFileSync('du', ['-sk', roots.hub], { encoding: 'utf8' }).split('\t')[0])
  expect(kilobytes / 1000).toBeLessThan(HUB_INSTALLED_MB)
})

inPackages('the tarball runs from the folder where it is unpacked', () => {
  const tarball = debianOf('hub').replace(/\.deb$/, '.tar.gz')
  execFileSync('tar', ['-xzf', tarball, '-C', folder])
  const { stdout } = spawnSync(join(folder, 'larder/hub/larder'), ['--version'], {
    encoding: 'utf8',
    env: { PATH },
  })
  expect(stdout).toMatch(/^larder-hub /)
  expect(readdirSync(join(folder, 'larder/hub/systemd'))).toContain('larder-edge.service')
})

inPackages(
  'a hub and a cloud from their packages sell an order',
  async () => {
    const [cloudPort, mqttPort, edgePort, simulatorPort] = (await freePorts(4)) as [
      number,
      number,
      number,
      number,
    ]
    setUp({ cloudPort, mqttPort, edgePort })
    await simulate(simulatorPort)
    start(command('cloud'), ['cloud', '--config', at('cloud.json')])
    const edge = start(command('hub'), ['edge', '--config', at('hub.json')])
    const order = await buy(`http://127.0.0.1:${cloudPort}`, `http://127.0.0.1:${simulatorPort}`)
    expect(order.items).toMatchObject([{ qty: 2, qty_dropped: 2 }])
    expect(residentMb(edge.pid!)).toBeLessThan(HUB_RESIDENT_MB)
    expect(asked('keys', 'list')).toEqual([])
  },
  180_000,
)

const at = (...path: string[]): string => join(folder, ...path)
const write = (file: string, value: unknown): void => writeFileSync(at(file), JSON.stringify(value))

/** Follows README: the hub at the cloud, its products, its password at the hub. */
function setUp(ports: { cloudPort: number; mqttPort: number; edgePort: number }): void {
  const template = join(packageRoot(), 'simulator/hardware/demo-hub.json')
  const hardware = JSON.parse(readFileSync(template, 'utf8')) as HardwareDescription
  const controllers = hardware.controllers.map((controller) => ({ ...controller, port: at(controller.port) }))
  write('hardware.json', { ...hardware, controllers })
  write('cloud.json', { DATA_DIR: at('data'), PORT: ports.cloudPort, MQTT_PORT: ports.mqttPort })
  const product = { upc: '036000291452', name: 'Cola', category: 'Drinks', price: 189, purchase_price: 70 }
  write('products.json', [{ ...product, facings: [{ cabinet: 1, shelf: 1, row: 1 }], quantity: 5 }])

  const place = '--street S --city C --state IL --postal-code 62701 --latitude 39.78 --longitude=-89.65'
  const named = ['--new-owner', 'Owner', '--name', 'Hub', '--timezone', 'America/Chicago']
  const described = [...named, ...place.split(' '), '--hardware', at('hardware.json')]
  const hub = asked('hubs', 'create', ...described) as { hub_id: number; mqtt_password: string }
  asked('products', 'import', '--hub', String(hub.hub_id), '--file', at('products.json'))
  write('hub.json', {
    HARDWARE: at('hardware.json'),
    STORE: at('hub.sqlite'),
    MQTT_URL: `mqtt://127.0.0.1:${ports.mqttPort}`,
    MQTT_PASSWORD: hub.mqtt_password,
    GPIO: `unix:${at('gpio.sock')}`,
    PORT: ports.edgePort,
  })
}

/** Simulates the hub's hardware, with the simulator of the repository. */
async function simulate(port: number): Promise<void> {
  write('shelves.json', [{ cabinet: 1, shelf: 1, row: 1, product_id: 1, units: 5 }])
  const [node, ...simulator] = commandOf('simulator/main')
  const env = {
    PATH,
    SIMULATOR_PORT: String(port),
    DATA_DIR: folder,
    HARDWARE_FILES: at('hardware.json'),
    SHELVES_FILE: at('shelves.json'),
    GPIO_SOCKET: `unix:${at('gpio.sock')}`,
    SIMULATOR_SPEED: '20',
    LOG_LEVEL: 'error',
  }
  started.push(spawn(node, simulator, { cwd: packageRoot(), env, stdio: 'ignore' }))
  await withRetries(async () =>
    expect((await fetch(`http://127.0.0.1:${port}/api/hubs/1/state`)).ok).toBe(true),
  )
}

/** A guest buys two units and takes them. */
async function buy(cloud: string, simulator: string): Promise<Order> {
  let bearer = ''
  async function ask<T>(method: string, path: string, body?: object): Promise<T> {
    const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' }
    const answer = await fetch(`${cloud}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  const identity = { sub: 'guest-1', anonymous: true }
  const token = await withRetries(() =>
    ask<{ access_token: string }>('POST', '/demo/identity/token', identity),
  )
  bearer = token.access_token
  const { user_id: user } = await ask<{ user_id: number }>('POST', '/users/user/bootstrap/guest')
  // Nothing is sold before the hub is online.
  const id = await withRetries(async () => {
    const { order_id } = await ask<Order>('POST', `/users/${user}/orders?hub_id=1`)
    const items = `/users/${user}/orders/${order_id}/order_item?hub_id=1`
    await ask('PUT', items, { product_id: 1, quantity: 2 })
    const payment = { order_id, payment_method_id: 'pm_card_visa' }
    expect((await ask<PaymentResult>('POST', '/users/payments/pay', payment)).status).toBe('succeeded')
    return order_id
  })
  const order = `/users/${user}/orders/${id}`
  const { results } = await withRetries(() =>
    ask<{ results: { bin_number: number }[] }>('POST', `${order}/open-delivery?hub_id=1`),
  )
  for (const { bin_number: bin } of results)
    await fetch(`${simulator}/api/hubs/1/act`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ action: 'take_items', target: `bin-${bin}` }),
    })
  return withRetries(async () => {
    const found = await ask<Order>('GET', `${order}?hub_id=1`)
    expect(found.processing_status_name).toBe('COMPLETED')
    return found
  })
}

/** Retries until the work succeeds. */
const withRetries = <T>(work: () => Promise<T>): Promise<T> =>
  vi.waitFor(work, { timeout: 60_000, interval: 250 })
