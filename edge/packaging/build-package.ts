import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
  readdirSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Progress } from '../../protocol/model/progress.ts'
import { checkedOut } from '../../protocol/build.ts'
import { versionOf } from '../../protocol/model/build-time.ts'
import { writeBuildFile } from './build-file.ts'
import { bundlePrograms, isNative, copyLicences, copyPackage, nameOf, productionFolders } from './bundle.ts'
import { commandGroups, commandsOf, readManifest, type Manifest, type PackageName } from './manifest.ts'
import { buildPages } from './pages.ts'
import { sbomOf } from './sbom.ts'
import {
  compileEpoll,
  fetchPackage,
  NODE,
  openTarget,
  placeNode,
  thisProcessor,
  type Processor,
  type Target,
} from './target.ts'

export interface BuiltPackage {
  /** The Debian package, the tarball, and the list of their parts. */
  files: string[]
  /** Installed size, in bytes. */
  installedBytes: number
  /** Whether the programs were started once, here or in an emulator. */
  isTried: boolean
}

export interface BuildOptions {
  /** The repository's folder, where `npm ci` has run. */
  root: string
  name: PackageName
  processor: Processor
  /** The folder that gets the files. */
  out: string
  /** Files with firmware of controllers, for the hub's package. */
  images: readonly string[]
  progress: Progress
}

/**
 * Makes a Debian package and a tarball of one program: its compiled workspaces, their run-time dependencies, Node, and
 * the command `larder`. Dependencies are those of the lock file.
 */
export async function buildPackage(options: BuildOptions): Promise<BuiltPackage> {
  const { root, name, processor, out, images, progress } = options
  const manifest = readManifest(root, name)
  const version = versionOf(checkedOut(root))
  const work = mkdtempSync(join(tmpdir(), 'larder-package-'))
  try {
    const tree = join(work, 'tree')
    const program = join(tree, 'usr/lib/larder', manifest.folder)
    mkdirSync(program, { recursive: true })

    progress.show('fetching Node')
    const target = openTarget(processor, work)
    progress.show('compiling')
    const { inside, native } = await placeCode(root, program, work, manifest)
    progress.show('making the pages')
    await buildPages(root, program, manifest.workspaces)
    progress.show('copying dependencies')
    for (const folder of native) copyPackage(sourceOf(root, folder, work), program, folder, target.arch)
    if (native.includes('node_modules/epoll')) compileEpoll(root, target, program)
    placeNode(target, program)
    for (const image of images) put(image, join(program, 'firmware'))
    placeProgram(root, program, manifest, { version, processor })
    const parts = `${JSON.stringify(sbomOf(root, { name: manifest.name, version }, [...inside, ...native]), null, 1)}\n`
    writeFileSync(join(program, 'sbom.cdx.json'), parts)
    execFileSync('chmod', ['-R', 'u=rwX,go=rX', tree])
    progress.show('trying every program and part')
    const isTried = tryOut(program, manifest, target, native)

    mkdirSync(out, { recursive: true })
    const base = join(out, `${manifest.name}_${version}_${processor}`)
    const files = [`${base}.deb`, `${base}.tar.gz`, `${base}.cdx.json`]
    placeSystemFiles(root, tree, manifest)
    const installedBytes = sizeOf(tree)
    progress.show('packing the Debian package')
    makeDebianPackage(root, tree, files[0]!, { manifest, version, processor })
    progress.show('packing the tarball')
    // The tarball runs from any folder. Units and configuration are next to the program, for manual
    // installation.
    for (const unit of manifest.units) put(join(root, unit), join(program, 'systemd'))
    for (const file of Object.values(manifest.configuration)) put(join(root, file), join(program, 'etc'))
    const packed = ['--owner=0', '--group=0', '-czf', files[1]!, '-C', join(tree, 'usr/lib'), 'larder']
    execFileSync('tar', packed)
    writeFileSync(files[2]!, parts)
    return { files, installedBytes, isTried }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function put(file: string, folder: string): void {
  mkdirSync(folder, { recursive: true })
  copyFileSync(file, join(folder, file.split('/').at(-1)!))
}

/** Places the bundled programs. Returns the folders of the packages in them, and of the separate packages. */
async function placeCode(
  root: string,
  program: string,
  work: string,
  manifest: Manifest,
): Promise<{ inside: string[]; native: string[] }> {
  const { threads, workspaces } = manifest
  const compiled = join(work, 'compiled')
  compile(root, compiled, work, manifest)
  const files = new Set(commandsOf(manifest).map(([, file]) => file.split(':')[0]!))
  const programs = [...files, ...threads, driverIn(compiled)]
  const inside = await bundlePrograms(root, compiled, program, programs)
  for (const folder of inside) copyLicences(root, folder, join(program, 'licences'))
  const native = productionFolders(root, workspaces).filter((folder) => isNative(nameOf(folder)))
  // npm does not install SQLite's driver of newer Nodes on Node 20.
  const separate = [SQLITE, ...native, ...productionFolders(root, native)]
  return { inside, native: [...new Set(separate)].sort() }
}

const SQLITE = 'node_modules/better-sqlite3'

/** The folder with a package's files. */
function sourceOf(root: string, folder: string, work: string): string {
  if (folder !== SQLITE || existsSync(join(root, folder))) return join(root, folder)
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; integrity: string }>
  }
  return fetchPackage({ name: nameOf(folder), ...lock.packages[folder]! }, work)
}

/** Compiles only the workspaces, into an empty folder, so that files of an earlier build are not packaged. */
function compile(root: string, program: string, work: string, { workspaces, without }: Manifest): void {
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      rootDir: root,
      outDir: program,
      noEmit: false,
      incremental: false,
      tsBuildInfoFile: null,
      typeRoots: [join(root, 'node_modules/@types')],
    },
    include: workspaces.map((workspace) => join(root, workspace)),
    exclude: without.map((folder) => join(root, folder)),
  }
  writeFileSync(join(work, 'tsconfig.json'), JSON.stringify(config))
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['--project', join(work, 'tsconfig.json')], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  for (const file of filesBelow(program).filter((path) => path.endsWith('.js'))) {
    const path = join(program, file)
    const text = readFileSync(path, 'utf8')
    // The package has no npm: texts for users must name the `larder` command.
    const named = text.replaceAll(/npm run ([a-z]+) --(?= )/g, 'larder $1')
    if (named !== text) writeFileSync(path, named)
  }
}

/** The command, and its data files. */
function placeProgram(
  root: string,
  program: string,
  manifest: Manifest,
  { version, processor }: { version: string; processor: Processor },
): void {
  const { name } = manifest
  const about = { name, version, processor, private: true, type: 'module' }
  writeBuildFile(root, program)
  writeFileSync(join(program, 'package.json'), `${JSON.stringify(about, null, 2)}\n`)
  writeFileSync(join(program, 'larder.version'), `${name} ${version} (Node ${NODE.version})\n`)
  writeFileSync(
    join(program, 'larder.commands'),
    commandGroups(manifest)
      .map(([heading, commands]) => [
        ...(heading === '' ? [] : [`# ${heading}`]),
        ...commands.map((each) => each.join(' ')),
      ])
      .flat()
      .map((line) => `${line}\n`)
      .join(''),
  )
  for (const file of ['notify-socket.pl', 'larder'])
    cpSync(join(root, 'edge/packaging', file), join(program, file))
  chmodSync(join(program, 'larder'), 0o755)
}

/**
 * A missing file must fail here, not on an installed hub. Without an emulator nothing can be tried for another
 * processor: returns false.
 */
function tryOut(
  program: string,
  manifest: Manifest,
  { runner, processor }: Target,
  native: readonly string[],
): boolean {
  if (!runner) return false
  const node = [...runner, join(program, 'bin/node')]
  const run = ([file, ...args]: string[]): unknown =>
    execFileSync(file!, args, { cwd: program, stdio: ['ignore', 'ignore', 'inherit'] })
  // One command for each program: the rest of a program is in its parts.
  const commands = new Map(commandsOf(manifest).map(([name, file]) => [file.split(':')[0]!, name]))
  if (processor === thisProcessor)
    for (const command of commands.values()) run([join(program, 'larder'), command, '--help'])
  const parts = filesBelow(program).filter((path) => path.includes('/parts/'))
  const modules = [...parts, ...manifest.threads].map((path) => `./${path}`)
  const imports = [...modules, ...native.map(nameOf).filter(isNative)].map(
    (name) => `await import(${JSON.stringify(name)})`,
  )
  const opened = `new (await import('./${driverIn(program)}')).Sqlite(':memory:').exec('select 1').close()`
  run([...node, '--input-type=module', '--eval', [...imports, opened, 'process.exit()'].join('\n')])
  return true
}

const driverIn = (program: string): string =>
  filesBelow(program).find(
    (path) => /^[a-z]+\/.*\/sqlite-driver\.js$/.test(path) && !/^node_modules|\/parts\//.test(path),
  )!

/** The files below a folder, by their paths from it. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  )
}

const sizeOf = (folder: string): number =>
  filesBelow(folder).reduce((sum, path) => sum + statSync(join(folder, path)).size, 0)

/** Puts units, configuration and other system files at Debian's locations, below `tree`. */
function placeSystemFiles(root: string, tree: string, { units, files, configuration }: Manifest): void {
  const place = (from: string, to: string, mode: number): void => {
    const path = join(tree, to)
    mkdirSync(dirname(path), { recursive: true })
    copyFileSync(join(root, from), path)
    chmodSync(path, mode)
  }
  for (const unit of units) place(unit, join('/usr/lib/systemd/system', unit.split('/').at(-1)!), 0o644)
  for (const [to, from] of Object.entries(files)) place(from, to, 0o644)
  // Configuration files contain secrets; postinst gives them to the services' group.
  for (const [to, from] of Object.entries(configuration)) place(from, to, 0o640)
}

/** Makes the Debian package of `tree` at `path`. */
function makeDebianPackage(
  root: string,
  tree: string,
  path: string,
  { manifest, version, processor }: { manifest: Manifest; version: string; processor: Processor },
): void {
  const { name, summary, about, groups, folder, units, configuration, recommends } = manifest
  const debian = join(tree, 'DEBIAN')
  const installedKiB = Math.ceil(sizeOf(tree) / 1024)
  const depends = [`libc6 (>= ${newestGlibc(tree)})`, 'libstdc++6', 'libgcc-s1', 'passwd', 'util-linux']
  const control = [
    `Package: ${name}`,
    `Version: ${version}`,
    `Architecture: ${processor}`,
    'Maintainer: Larder <root@localhost>',
    'Section: misc',
    'Priority: optional',
    `Installed-Size: ${installedKiB}`,
    `Depends: ${depends.join(', ')}`,
    `Recommends: ${recommends.join(', ')}`,
    `Description: ${summary}`,
    ` ${about}`,
    '',
  ]
  mkdirSync(debian)
  writeFileSync(join(debian, 'control'), control.join('\n'))
  writeFileSync(join(debian, 'conffiles'), `${Object.keys(configuration).join('\n')}\n`)
  const values: Record<string, string> = {
    FOLDER: folder,
    GROUPS: groups.join(' '),
    UNITS: units.map((unit) => unit.split('/').at(-1)!).join(' '),
    CONFIGURATION: Object.keys(configuration).join(' '),
  }
  for (const script of ['postinst', 'prerm', 'postrm']) {
    const text = readFileSync(join(root, 'edge/packaging/debian', script), 'utf8')
    writeFileSync(
      join(debian, script),
      text.replaceAll(/@([A-Z]+)@/g, (_, key: string) => values[key]!),
      { mode: 0o755 },
    )
  }
  // Level 1 of xz needs 4 s, and 20 % more space than its last level, which needs 30 s.
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '-z1', '--build', tree, path], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** The newest glibc version that Node or a native module requires. */
function newestGlibc(tree: string): string {
  const versions = filesBelow(tree)
    .filter((path) => /\.node$|\/bin\/node$/.test(path))
    .flatMap((path) => [...readFileSync(join(tree, path), 'latin1').matchAll(/GLIBC_2\.(\d+)/g)])
    .map((match) => Number(match[1]))
  return `2.${Math.max(17, ...versions)}`
}
