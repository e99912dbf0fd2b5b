import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** What a package consists of. Paths of the repository are relative to it; those of the system begin with a slash. */
const Manifest = z.strictObject({
  /** Its name in Debian, and that of its folder below /usr/lib/larder. */
  name: z.string(),
  folder: z.string(),
  summary: z.string(),
  about: z.string(),
  workspaces: z.array(z.string()),
  /** Folders of the workspaces that it leaves out. */
  without: z.array(z.string()),
  /** Name, program with what it is called with, Node's flags with commas between them, configuration, what it does: as `larder` reads them. */
  commands: z.array(z.tuple([z.string(), z.string(), z.string(), z.string(), z.string()])),
  /** Commands of one program by their headings: each is called with the command's name as its first argument. */
  nouns: z
    .strictObject({
      program: z.string(),
      configuration: z.string(),
      groups: z.record(z.string(), z.record(z.string(), z.string())),
    })
    .optional(),
  /** Programs that a service starts as threads of its own, at their place in the sources. */
  threads: z.array(z.string()).default([]),
  units: z.array(z.string()),
  /** Groups of the system that its services are in. */
  groups: z.array(z.string()),
  /** Files of the system, and where they come from; those of the configuration are kept on upgrade. */
  files: z.record(z.string(), z.string()),
  configuration: z.record(z.string(), z.string()),
  recommends: z.array(z.string()),
})
export type Manifest = z.infer<typeof Manifest>

/** Every command under its heading; those without a heading first. */
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

/** The packages that can be made, each described by a file of its own workspace. */
const manifests = { hub: 'edge/packaging/hub.json', cloud: 'cloud/packaging/cloud.json' } as const
export type PackageName = keyof typeof manifests
export const packageNames = Object.keys(manifests) as PackageName[]

export const readManifest = (root: string, name: PackageName): Manifest =>
  Manifest.parse(JSON.parse(readFileSync(join(root, manifests[name]), 'utf8')))
