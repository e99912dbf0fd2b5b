import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
  readdirSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { Progress } from '../../protocol/model/progress.ts'
import { checkedOut } from '../../protocol/build.ts'
import { versionOf } from '../../protocol/model/build-time.ts'
import { writeBuildFile } from './build-file.ts'
import { bundlePrograms, isNative, copyLicences, copyPackage, nameOf, productionFolders } from './bundle.ts'
import { commandGroups, commandsOf, readManifest, type Manifest, type PackageName } from './manifest.ts'
import { buildPages } from './pages.ts'

export interface BuiltPackage {
  debian: string
  tarball: string
  /** Installed size without Node, in bytes. */
  installedBytes: number
}

export interface BuildOptions {
  /** The repository's folder, where `npm ci` has run. */
  root: string
  name: PackageName
  /** The folder that gets the files. */
  out: string
  progress: Progress
}

/**
 * Makes a Debian package and a tarball of one program: its compiled workspaces, their run-time dependencies,
 * and the command `larder`. The dependencies are those that `npm ci` installed and compiled on this machine.
 */
export async function buildPackage({ root, name, out, progress }: BuildOptions): Promise<BuiltPackage> {
  const manifest = readManifest(root, name)
  const version = versionOf(checkedOut(root))
  const line = Number(process.versions.node.split('.')[0])
  const work = mkdtempSync(join(tmpdir(), 'larder-package-'))
  try {
    const tree = join(work, 'tree')
    const program = join(tree, 'usr/lib/larder', manifest.folder)
    mkdirSync(program, { recursive: true })

    progress.show('compiling')
    const folders = await placeCode(root, program, work, manifest)
    progress.show('making the pages')
    await buildPages(root, program, manifest.workspaces)
    for (const [index, folder] of folders.entries()) {
      progress.show(`copying dependencies: ${index + 1} of ${folders.length}`)
      copyPackage(root, folder, program)
    }
    placeProgram(root, program, { manifest, version, line })
    execFileSync('chmod', ['-R', 'u=rwX,go=rX', tree])
    progress.show('trying every command and part')
    tryOut(program, manifest)

    mkdirSync(out, { recursive: true })
    const base = join(out, `${manifest.name}_${version}_${debianArchitecture}_node${line}`)
    placeSystemFiles(root, tree, manifest)
    const installedBytes = sizeOf(tree)
    progress.show('packing the Debian package')
    makeDebianPackage(root, tree, `${base}.deb`, { manifest, version, line })
    progress.show('packing the tarball')
    // The tarball runs from any folder. Units and configuration are next to the program, for manual
    // installation.
    for (const unit of manifest.units) put(join(root, unit), join(program, 'systemd'))
    for (const file of Object.values(manifest.configuration)) put(join(root, file), join(program, 'etc'))
    execFileSync('tar', [
      '--owner=0',
      '--group=0',
      '-czf',
      `${base}.tar.gz`,
      '-C',
      join(tree, 'usr/lib'),
      'larder',
    ])
    return { debian: `${base}.deb`, tarball: `${base}.tar.gz`, installedBytes }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function put(file: string, folder: string): void {
  mkdirSync(folder, { recursive: true })
  copyFileSync(file, join(folder, file.split('/').at(-1)!))
}

/** Places the bundled programs. Returns the folders of the packages that they need as separate files. */
async function placeCode(root: string, program: string, work: string, manifest: Manifest): Promise<string[]> {
  const { threads, workspaces } = manifest
  const compiled = join(work, 'compiled')
  compile(root, compiled, work, manifest)
  const files = new Set(commandsOf(manifest).map(([, file]) => file.split(':')[0]!))
  const programs = [...files, ...threads, driverIn(compiled)]
  const inside = await bundlePrograms(root, compiled, program, programs)
  for (const folder of inside) copyLicences(root, folder, join(program, 'licences'))
  const native = productionFolders(root, workspaces).filter((folder) => isNative(nameOf(folder)))
  return [...new Set([...native, ...productionFolders(root, native)])].sort()
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

interface Made {
  manifest: Manifest
  version: string
  line: number
}

/** The command, the check of Node, and their data files. */
function placeProgram(root: string, program: string, { manifest, version, line }: Made): void {
  const { name } = manifest
  const about = {
    name,
    version,
    private: true,
    type: 'module',
    madeFor: { line, abi: process.versions.modules },
  }
  writeBuildFile(root, program)
  writeFileSync(join(program, 'package.json'), `${JSON.stringify(about, null, 2)}\n`)
  writeFileSync(join(program, 'larder.version'), `${name} ${version} for Node ${line}\n`)
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
  for (const file of ['node-check.cjs', 'notify-socket.pl', 'larder'])
    cpSync(join(root, 'edge/packaging', file), join(program, file))
  chmodSync(join(program, 'larder'), 0o755)
}

/** A missing file must fail here, not on an installed hub. */
function tryOut(program: string, manifest: Manifest): void {
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter) }
  for (const [command] of commandsOf(manifest))
    execFileSync(join(program, 'larder'), [command, '--help'], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  const parts = filesBelow(program).filter((path) => path.includes('/parts/'))
  const imports = [...parts, ...manifest.threads].map((path) => `await import('./${path}')`)
  const opened = `new (await import('./${driverIn(program)}')).Sqlite(':memory:').exec('select 1').close()`
  const script = [...imports, opened, 'process.exit()'].join('\n')
  execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: program })
}

const driverIn = (program: string): string =>
  filesBelow(program).find(
    (path) => /^[a-z]+\/.*\/sqlite-driver\.js$/.test(path) && !/^node_modules|\/parts\//.test(path),
  )!

/** Debian's names of the processors, if they differ from Node's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm: 'armhf', ia32: 'i386' }
const debianArchitecture = architectures[process.arch] ?? process.arch

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

/** Makes the Debian package of `tree` at `path`. `line` is the Node release line of the native modules. */
function makeDebianPackage(
  root: string,
  tree: string,
  path: string,
  { manifest, version, line }: { manifest: Manifest; version: string; line: number },
): void {
  const { name, summary, about, groups, folder, units, configuration, recommends } = manifest
  const debian = join(tree, 'DEBIAN')
  const installedKiB = Math.ceil(sizeOf(tree) / 1024)
  const depends = [`libc6 (>= ${newestGlibc(tree)})`, 'libstdc++6', 'passwd', 'util-linux']
  const control = [
    `Package: ${name}`,
    `Version: ${version}`,
    `Architecture: ${debianArchitecture}`,
    'Maintainer: Larder <root@localhost>',
    'Section: misc',
    'Priority: optional',
    `Installed-Size: ${installedKiB}`,
    `Depends: ${depends.join(', ')}`,
    // Not a dependency: a system that replaces its Node must not remove a hub's service.
    `Recommends: ${[`nodejs (>= ${line})`, ...recommends].join(', ')}`,
    `Description: ${summary}`,
    ` ${about}`,
    '',
  ]
  mkdirSync(debian)
  writeFileSync(join(debian, 'control'), control.join('\n'))
  writeFileSync(join(debian, 'conffiles'), `${Object.keys(configuration).join('\n')}\n`)
  const values: Record<string, string> = {
    FOLDER: folder,
    LINE: String(line),
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
  execFileSync('dpkg-deb', ['--root-owner-group', '--build', tree, path], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** The newest glibc version that a native module requires: the modules were compiled against this machine's glibc. */
function newestGlibc(tree: string): string {
  const versions = filesBelow(tree)
    .filter((path) => path.endsWith('.node'))
    .flatMap((path) => [...readFileSync(join(tree, path), 'latin1').matchAll(/GLIBC_2\.(\d+)/g)])
    .map((match) => Number(match[1]))
  return `2.${Math.max(17, ...versions)}`
}
