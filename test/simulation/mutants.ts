import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Violation } from '../invariants/evidence.ts'

/** A change of the source; `find` occurs exactly once in its file. */
export interface Patch {
  file: string
  find: string
  replace: string
}

/** One safeguard that is removed in a copy of the source. */
export interface Mutant {
  name: string
  /** The invariant that it protects. */
  invariant: Violation['invariant']
  patches: readonly Patch[]
}

export interface MutantOutcome {
  name: string
  /** The first seed that failed; undefined if none failed. */
  seed: number | undefined
  /** The output of the swarm. */
  output: string
}

/** Includes the compiled files. */
const COPIED = ['edge', 'cloud', 'protocol', 'simulator', 'test', 'package.json', 'tsconfig.json', '.build']

/** Number of seeds within which a mutant must be detected. */
export const SEEDS = 500

interface Seeds {
  seeds: number
  from: number
  jobs: number
}

/** The source without a mutant, compiled. */
export interface Original {
  folder: string
  /** Whether a seed fails here, too: it proves nothing about a mutant. Each seed runs once. */
  fails: (seed: number) => Promise<boolean>
}

/** Makes a compiled copy of the source. The caller deletes its folder. */
export async function compiledCopy(root: string): Promise<Original> {
  const folder = await copyOf(root, (copy) => compile(copy, 'tsconfig.json'))
  const known = new Map<number, Promise<boolean>>()
  const failsAt = async (seed: number): Promise<boolean> =>
    (await swarm(folder, { seeds: 1, from: seed, jobs: 1 })).seed !== undefined
  return {
    folder,
    fails(seed) {
      const fails = known.get(seed) ?? failsAt(seed)
      known.set(seed, fails)
      return fails
    },
  }
}

/** Makes a copy of a compiled copy in which only the patched files are compiled again. The caller deletes it. */
const mutantOf = ({ folder: original }: Original, patches: readonly Patch[]): Promise<string> =>
  copyOf(original, async (folder) => {
    for (const patch of patches) await applyPatch(folder, patch)
    const project = {
      extends: './tsconfig.json',
      compilerOptions: { noResolve: true, incremental: false, tsBuildInfoFile: null },
      files: [...new Set(patches.map(({ file }) => file))],
      include: [],
    }
    await writeFile(join(folder, 'tsconfig.mutant.json'), JSON.stringify(project))
    await compile(folder, 'tsconfig.mutant.json')
  })

async function copyOf(root: string, finish: (folder: string) => Promise<void>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'larder-mutant-'))
  try {
    for (const name of COPIED)
      if (existsSync(join(root, name))) await cp(join(root, name), join(folder, name), { recursive: true })
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    await finish(folder)
    return folder
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

async function compile(folder: string, project: string): Promise<void> {
  const compiler = join(folder, 'node_modules', '.bin', 'tsc')
  const terms = ['--project', project, '--noEmit', 'false', '--noCheck']
  const { status, output } = await run(compiler, terms, folder)
  if (status !== 0) throw new Error(`it does not compile:\n${output}`)
}

/**
 * Runs the swarm on a mutant of `original` with one range of seeds after the other, until a seed fails
 * that passes without the patches.
 */
export async function runMutant(
  original: Original,
  mutant: Mutant,
  ranges: readonly Seeds[],
): Promise<MutantOutcome> {
  const folder = await mutantOf(original, mutant.patches)
  const outputs: string[] = []
  try {
    for (const { seeds, from, jobs } of ranges)
      for (let next = from; next < from + seeds;) {
        const found = await swarm(folder, { seeds: from + seeds - next, from: next, jobs })
        outputs.push(found.output)
        if (found.seed === undefined) break
        if (!(await original.fails(found.seed))) return { name: mutant.name, ...found }
        next = found.seed + 1
      }
    return { name: mutant.name, seed: undefined, output: outputs.join('\n') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * The known seed first, then the seeds within which every mutant must be detected. The events of a seed
 * change with any change of the system: a known seed saves time and proves nothing.
 */
export const knownFirst = (known: number, jobs: number): readonly Seeds[] => [
  { seeds: 1, from: known, jobs },
  { seeds: SEEDS, from: 1, jobs },
]

async function swarm(folder: string, seeds: Seeds): Promise<Pick<MutantOutcome, 'seed' | 'output'>> {
  const terms = Object.entries(seeds).flatMap(([name, value]) => [`--${name}`, String(value)])
  const program = ['.build/test/simulation/main.js', '--quiet', ...terms]
  const { output } = await run(process.execPath, program, folder)
  const seed = /^seed (\d+) failed/m.exec(output)?.[1]
  return { seed: seed === undefined ? undefined : Number(seed), output }
}

async function applyPatch(folder: string, { file, find, replace }: Patch): Promise<void> {
  const path = join(folder, file)
  const text = await readFile(path, 'utf8')
  const places = text.split(find).length - 1
  if (places !== 1) throw new Error(`${file} holds ${places} times what a mutant changes: ${find}`)
  await writeFile(
    path,
    text.replace(find, () => replace),
  )
}

function run(
  command: string,
  args: string[],
  cwd: string,
): Promise<{ status: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    const collect = (chunk: Buffer): void => void (output += chunk.toString())
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, output }))
  })
}
