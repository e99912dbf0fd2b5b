import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** The contents of a package. Repository paths are relative to it; system paths start with a slash. */
const Manifest = z.strictObject({
  /** Its name in Debian. */
  name: z.string(),
  folder: z.string(),
  summary: z.string(),
  about: z.string(),
  workspaces: z.array(z.string()),
  /** Folders of the workspaces that the package does not contain. */
  without: z.array(z.string()),
  /**
   * Name, program with its first argument, Node's flags separated by commas, configuration, summary: the
   * format that `larder` reads.
   */
  commands: z.array(z.tuple([z.string(), z.string(), z.string(), z.string(), z.string()])),
  /** Commands of one program by heading: the program gets the command's name as its first argument. */
  nouns: z
    .strictObject({
      program: z.string(),
      configuration: z.string(),
      groups: z.record(z.string(), z.record(z.string(), z.string())),
    })
    .optional(),
  /** Programs that a service starts as its own threads, at their place in the sources. */
  threads: z.array(z.string()).default([]),
  units: z.array(z.string()),
  /** System groups of its services. */
  groups: z.array(z.string()),
  /** System files and their sources. Configuration files are kept on upgrade. */
  files: z.record(z.string(), z.string()),
  configuration: z.record(z.string(), z.string()),
  recommends: z.array(z.string()),
})
export type Manifest = z.infer<typeof Manifest>

/** Every command under its heading; commands without a heading first. */
export const commandGroups = ({ commands, nouns }: Manifest): [heading: string, Manifest['commands']][] => [
  ['', commands],
  ...Object.entries(nouns?.groups ?? {}).map(([heading, group]): [string, Manifest['commands']] => [
    heading,
    Object.entries(group).map(([name, summary]) => [
      name,
      `${nouns!.program}:${name}`,
      '-',
      nouns!.configuration,
      summary,
    ]),
  ]),
]

export const commandsOf = (manifest: Manifest): Manifest['commands'] =>
  commandGroups(manifest).flatMap(([, commands]) => commands)

/** The packages that can be made. Each is described by a file of its own workspace. */
const manifests = { hub: 'edge/packaging/hub.json', cloud: 'cloud/packaging/cloud.json' } as const
export type PackageName = keyof typeof manifests
export const packageNames = Object.keys(manifests) as PackageName[]

export const readManifest = (root: string, name: PackageName): Manifest =>
  Manifest.parse(JSON.parse(readFileSync(join(root, manifests[name]), 'utf8')))
