-- Counts the requests under way for each file and refuses those beyond a limit, as http-access-limiter does with mod_mruby.
-- Each process of the server counts for itself: enough to see what the counting costs, too little to limit a server of many processes.

require "apache2"

local limit = 90000000

-- Before a request is worked on.
function enter(r)
    local file = r.filename
    local under_way = (r:ivm_get(file) or 0) + 1
    r:ivm_set(file, under_way)
    -- By the time it is logged, a request that was passed on to PHP-FPM has another name.
    r.notes["limited"] = file
    if under_way > limit then
        r:notice("access_limiter: file:" .. file .. " reached threshold: " .. limit .. ": return 503")
        return 503
    end
    return apache2.DECLINED
end

-- When it is logged.
function leave(r)
    local file = r.notes["limited"]
    if file then
        r:ivm_set(file, (r:ivm_get(file) or 1) - 1)
    end
    return apache2.DECLINED
end
