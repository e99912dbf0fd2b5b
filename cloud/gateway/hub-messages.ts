import type { z } from 'zod'
import { CommandResult } from '../../protocol/mqtt/command.ts'
import { DiagnosisPart } from '../../protocol/mqtt/diagnosis.ts'
import {
  Ack,
  Batch,
  CertificateRequest,
  Erased,
  Heartbeat,
  Hello,
  Moved,
  Presence,
  StorageReport,
} from '../../protocol/mqtt/session.ts'
import type { UpChannel } from '../../protocol/mqtt/topics.ts'

/** The messages of a hub, by channel. */
export const upSchemas = {
  presence: Presence,
  hello: Hello,
  heartbeat: Heartbeat,
  entries: Batch,
  telemetry: Batch,
  ack: Ack,
  result: CommandResult,
  storage: StorageReport,
  certificate: CertificateRequest,
  diagnosis: DiagnosisPart,
  erased: Erased,
  moved: Moved,
} satisfies Record<UpChannel, z.ZodType>

export type HubMessage = {
  [Channel in UpChannel]: { channel: Channel; body: z.infer<(typeof upSchemas)[Channel]> }
}[UpChannel]

/** The messages for `HubLink`; `CommandSender`, `Diagnoses` and the domain receive the others. */
export type LinkMessage = Exclude<HubMessage, { channel: 'result' | 'certificate' | 'diagnosis' }>
