import type { Generated } from 'kysely'
import type { Fixed, Instant } from './columns.ts'

/** Files, and what is made of them. */
export interface MediaTables {
  /** A row is there before its file is, and until after it has gone. */
  media: {
    key: Fixed<string>
    /** pending: being stored; kept: something refers to it; removed: about to go. */
    state: 'pending' | 'kept' | 'removed'
    mime_type: Fixed<string>
    /** Bytes; 0 until it is stored. */
    size: number
    /** Hexadecimal; empty until it is stored. */
    sha256: string
    created_at: Fixed<Instant>
  }
  /** The last id given to an object with files. */
  media_folders: { folder: Fixed<string>; last: number }
  maintenance_reports: {
    id: Fixed<number>
    hub_id: Fixed<number>
    name: Fixed<string>
    service_type: Fixed<string>
    hub_tested: Fixed<string | null>
    service_start_time: Fixed<Instant>
    service_end_time: Fixed<Instant | null>
    description: Fixed<string | null>
    /** JSON: names. */
    components_serviced: Fixed<string>
    submitted_by: Fixed<string>
    /** When its author says that it was submitted. */
    submitted_at: Fixed<Instant>
    created_at: Fixed<Instant>
  }
  maintenance_media: {
    report_id: Fixed<number>
    /** From 0, in the order of the form. */
    position: Fixed<number>
    key: Fixed<string>
    fieldname: Fixed<string>
    original_name: Fixed<string>
  }
  banners: {
    id: Generated<number>
    hub_id: Fixed<number>
    name: Fixed<string>
    order_by: Fixed<number>
    image_key: Fixed<string>
    created_at: Fixed<Instant>
  }
}
