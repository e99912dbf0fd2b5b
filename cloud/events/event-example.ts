import { eventData } from '../../protocol/contract/event-data.ts'
import type { EventType } from '../../protocol/model/event-types.ts'
import { exampleOf, schemaWriter } from '../platform/http/json-schema.ts'

/** What an event of a type is about, as the description would show it. */
export function exampleOfEvent(type: EventType): object {
  const writer = schemaWriter()
  return exampleOf(writer.write(eventData[type]), writer.components) as object
}
