import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './programs.ts'

/** The statements of the last frozen schema. Its first commit has that schema. */
const FROZEN = 'test/cloud/platform/store/released/1.sqlite.sql'

const git = (...words: string[]): string =>
  execFileSync('git', ['-C', packageRoot(), ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()

/** The oldest commit that an operator can upgrade from, or the reason why this checkout lacks it. */
export function frozenCommit(): { commit: string } | { missing: string } {
  try {
    if (git('rev-parse', '--is-shallow-repository') === 'true') return { missing: 'the history is shallow' }
    const commit = git('log', '--diff-filter=A', '--format=%H', '--', FROZEN).split('\n').at(-1)!
    // In a squashed history the frozen schema seems to begin with the present commit.
    if (commit === git('rev-parse', 'HEAD')) return { missing: 'the history does not reach back' }
    return { commit }
  } catch {
    return { missing: 'this is no checkout of git with its history' }
  }
}

/** The programs of an installed version, and the program that makes the demo's data for it. */
export interface Version {
  cloud: readonly string[]
  hub: readonly string[]
  seed: readonly string[]
}

/** These packages go nowhere, so nothing compresses them. */
const unpressed = { DPKG_DEB_COMPRESSOR_TYPE: 'none', GZIP: '-1' }

/** Runs a program to its end. Rejects with its output if it fails. */
function run(program: string, args: readonly string[], cwd: string): Promise<void> {
  const env = { ...process.env, ...unpressed }
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.once('close', (status) =>
      status === 0 ? resolve() : reject(new Error(`${program} ${args.join(' ')}: ${output}`)),
    )
  })
}

/** Whether this checkout has the same version of every package that another one needs. */
function hasModulesOf(tree: string): boolean {
  const locked = (folder: string): Record<string, { version?: string }> =>
    (
      JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
        packages: Record<string, { version?: string }>
      }
    ).packages
  const present = locked(packageRoot())
  return Object.entries(locked(tree)).every(([path, { version }]) => present[path]?.version === version)
}

/** Types are checked in the present commit only: they were checked when the former one was the present. */
function compileUnchecked(tree: string): void {
  const project = join(tree, 'tsconfig.json')
  renameSync(project, join(tree, 'tsconfig.checked.json'))
  writeFileSync(
    project,
    JSON.stringify({ extends: './tsconfig.checked.json', compilerOptions: { noCheck: true } }),
  )
}

/** Makes the packages of a commit, and installs them below `folder`. */
export async function installCommit(commit: string, folder: string): Promise<Version> {
  const root = packageRoot()
  const tree = join(folder, 'tree')
  await run('git', ['clone', '--quiet', '--shared', '--no-checkout', root, tree], root)
  await run('git', ['checkout', '--quiet', '--detach', commit], tree)
  if (hasModulesOf(tree)) symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  else await run('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], tree)
  compileUnchecked(tree)
  const compile = ['node_modules/typescript/bin/tsc', '--project', 'tsconfig.json', '--noEmit', 'false']
  await run(process.execPath, compile, tree)
  const installed = join(folder, 'installed')
  await Promise.all(
    ['cloud', 'hub'].map(async (name) => {
      const packages = join(folder, name)
      await run(process.execPath, ['.build/edge/packaging/main.js', name, '--out', packages], tree)
      const debian = readdirSync(packages).find((each) => each.endsWith('.deb'))!
      await run('dpkg-deb', ['--extract', join(packages, debian), installed], tree)
    }),
  )
  const config = join(folder, 'none.json')
  writeFileSync(config, '{}')
  const larder = (part: string): string => join(installed, 'usr/lib/larder', part, 'larder')
  return {
    cloud: [larder('cloud'), 'cloud', '--config', config],
    hub: [larder('hub'), 'edge', '--config', config],
    seed: [process.execPath, join(tree, '.build/cloud/demo/seed.js')],
  }
}
