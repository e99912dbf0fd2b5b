import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDone, once } from './once.ts'

/** The repository's folder, above this file or its compiled form: only that folder has a tsconfig.json. */
export function packageRoot(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'tsconfig.json'))) {
    if (folder === dirname(folder))
      throw new Error('no tsconfig.json above this file: the repository is not whole')
    folder = dirname(folder)
  }
  return folder
}

const isSource = import.meta.filename.endsWith('.ts')

/**
 * The programs that tests start often. They run as bundles, like the programs of the packages: a cloud starts with a
 * quarter of the processor time, a hub with half of it.
 */
export const bundledPrograms: readonly string[] = [
  'cloud/main',
  'cloud/cli/main',
  'cloud/demo/seed',
  'cloud/doctor-main',
  'cloud/broker-check-main',
  'edge/main',
  // The hub starts this program and `enrol-main` beside its own.
  'edge/doctor-main',
  'edge/management/main',
  'edge/updater-main',
  'edge/enrolment/enrol-main',
  'edge/supervision',
  'simulator/main',
  'simulator/demo/main',
  'simulator/demo/try-main',
  'simulator/board-test/main',
  'simulator/mounts/gpio/sysfs-main',
]

/** The folder of the compiled programs, and the folder of the bundles. */
export const compiledFolder = (): string => join(packageRoot(), '.build')
export const bundleFolder = (): string => join(compiledFolder(), 'bundled')

/**
 * The command of a program of this package (`cloud/main`, followed by arguments). `before`: modules that are imported
 * first.
 */
export function commandOf(program: string, before: readonly string[] = []): [string, ...string[]] {
  const [node, file] = compiledCommandOf(program)
  const isBundled = bundledPrograms.includes(program)
  if (isBundled && isSource) once('bundled', bundle)
  if (!isBundled || !isDone('bundled')) return [node, ...imported(before), file]
  return [node, ...imported(before), join(bundleFolder(), `${program}.js`)]
}

/** The command of a program as `npm start` runs it: each module is a file. */
export function compiledCommandOf(program: string): [node: string, file: string] {
  if (isSource) once('compiled', compile)
  return [process.execPath, join(compiledFolder(), `${program}.js`)]
}

const imported = (names: readonly string[]): string[] =>
  names.flatMap((name) => ['--import', join(compiledFolder(), `${name}.js`)])

/** Compiles the present sources. */
function compile(): void {
  run(
    join(packageRoot(), 'node_modules/.bin/tsc'),
    '--project',
    'tsconfig.json',
    '--noEmit',
    'false',
    '--noCheck',
  )
}

/** Bundles the compiled programs. */
function bundle(): void {
  run(process.execPath, join(compiledFolder(), 'test/support/bundle-main.js'))
}

function run(command: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: packageRoot(), encoding: 'utf8' })
  if (status !== 0) throw new Error(`the programs are not made:\n${stdout}${stderr}`)
}
