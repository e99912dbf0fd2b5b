import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './programs.ts'

/** The statements of the last frozen schema. Its first commit has that schema. */
const FROZEN = 'test/cloud/platform/store/released/1.sqlite.sql'

const git = (...words: string[]): string =>
  execFileSync('git', ['-C', packageRoot(), ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()

/** The commits that an operator upgrades from, or the reason why this checkout has none. */
export function formerCommits(): { frozen: string; previous: string } | string {
  try {
    if (git('rev-parse', '--is-shallow-repository') === 'true') return 'the history is shallow'
    const frozen = git('log', '--diff-filter=A', '--format=%H', '--', FROZEN).split('\n').at(-1)!
    const previous = git('rev-parse', '--verify', 'HEAD^1')
    // In a squashed history the frozen schema seems to begin with the present commit.
    return frozen === git('rev-parse', 'HEAD') ? 'the history does not reach back' : { frozen, previous }
  } catch {
    return 'this is no checkout of git with its history'
  }
}

/** The programs of a version, and the program that makes the demo's data for it. */
export interface Version {
  cloud: readonly string[]
  hub: readonly string[]
  seed: readonly string[]
}

/** Runs a program to its end. Rejects with its output if it fails. */
function run(program: string, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
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

/**
 * Compiles a commit below `folder`. Its packages would contain the same programs; `test/process/package.test.ts`
 * proves them for the present commit, and packing takes a minute each.
 */
export async function compileCommit(commit: string, folder: string): Promise<Version> {
  const root = packageRoot()
  const tree = join(folder, 'tree')
  await run('git', ['clone', '--quiet', '--shared', '--no-checkout', root, tree], root)
  await run('git', ['checkout', '--quiet', '--detach', commit], tree)
  if (hasModulesOf(tree)) symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  else await run('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], tree)
  const compile = ['node_modules/typescript/bin/tsc', '--project', 'tsconfig.json', '--noEmit', 'false']
  await run(process.execPath, [...compile, '--noCheck'], tree)
  const program = (name: string): readonly string[] => [process.execPath, join(tree, '.build', `${name}.js`)]
  return { cloud: program('cloud/main'), hub: program('edge/main'), seed: program('cloud/demo/seed') }
}
