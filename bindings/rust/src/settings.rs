//! Settings of threads and calls, and decisions.
use crate::error::{c_string, check, field, text};
use crate::{raw, Result};
use std::ffi::CString;
use std::marker::PhantomData;
use std::ptr::{null, null_mut, NonNull};

/// Changes, written "key=value", with the text that they point into.
struct Changes {
    _texts: Vec<CString>,
    raw: Vec<raw::tn_change>,
}

impl Changes {
    fn parse(texts: &[&str]) -> Result<Changes> {
        let texts = texts.iter().map(|one| c_string(one)).collect::<Result<Vec<_>>>()?;
        let mut parsed = Vec::with_capacity(texts.len());
        for one in &texts {
            let mut change = raw::tn_change { setting: 0, strength: 0, value: 0, text: null() };
            check(|err| unsafe { raw::tn_setting_parse(one.as_ptr(), &mut change, err) })?;
            parsed.push(change);
        }
        Ok(Changes { _texts: texts, raw: parsed })
    }
}

/// Changes of settings for the current thread, until it is dropped. It cannot be sent to another thread.
pub struct Scope {
    raw: raw::tn_scope,
    thread: PhantomData<*const ()>,
}

impl Scope {
    /// `Scope::enter(&["fp32_precision=ieee", "inference=true"])`.
    pub fn enter(changes: &[&str]) -> Result<Scope> {
        let changes = Changes::parse(changes)?;
        let mut scope = Scope::empty();
        check(|err| unsafe { raw::tn_scope_enter(&mut scope.raw, changes.raw.as_ptr(), changes.raw.len(), err) })?;
        Ok(scope)
    }

    /// All settings of a context.
    pub fn enter_context(context: &Context) -> Result<Scope> {
        let mut scope = Scope::empty();
        check(|err| unsafe { raw::tn_scope_enter_context(&mut scope.raw, context.raw.as_ptr(), err) })?;
        Ok(scope)
    }

    fn empty() -> Scope {
        Scope { raw: raw::tn_scope { inside: null_mut(), reserved: 0 }, thread: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        unsafe { raw::tn_scope_leave(&mut self.raw) }
    }
}

/// A complete set of settings. It never changes and may be used from any thread.
pub struct Context {
    raw: NonNull<raw::tn_context>,
}

unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    /// The settings of the calling thread.
    pub fn capture() -> Result<Context> {
        let mut made = null_mut();
        check(|err| unsafe { raw::tn_context_capture(&mut made, err) })?;
        Ok(Context::own(made))
    }

    /// The settings of the calling thread with changes, as [`Scope::enter`] takes them.
    pub fn with(changes: &[&str]) -> Result<Context> {
        Context::derive(null(), changes)
    }

    /// These settings with changes.
    pub fn and(&self, changes: &[&str]) -> Result<Context> {
        Context::derive(self.as_raw(), changes)
    }

    /// The value of a setting as text: `context.value("fp32_precision")`.
    pub fn value(&self, key: &str) -> Result<String> {
        let key = c_string(key)?;
        let mut setting = 0;
        check(|err| unsafe { raw::tn_setting_get(key.as_ptr(), &mut setting, err) })?;
        let length = unsafe { raw::tn_setting_write(self.as_raw(), setting, null_mut(), 0) };
        let mut bytes = vec![0u8; length + 1];
        unsafe { raw::tn_setting_write(self.as_raw(), setting, bytes.as_mut_ptr().cast(), bytes.len()) };
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn as_raw(&self) -> *const raw::tn_context {
        self.raw.as_ptr()
    }

    fn derive(from: *const raw::tn_context, changes: &[&str]) -> Result<Context> {
        let changes = Changes::parse(changes)?;
        let mut made = null_mut();
        check(|err| unsafe { raw::tn_context_derive(from, changes.raw.as_ptr(), changes.raw.len(), &mut made, err) })?;
        Ok(Context::own(made))
    }

    fn own(made: *mut raw::tn_context) -> Context {
        Context { raw: NonNull::new(made).expect("a context that was made") }
    }
}

impl Clone for Context {
    fn clone(&self) -> Context {
        Context::own(unsafe { raw::tn_context_retain(self.raw.as_ptr()) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { raw::tn_context_release(self.raw.as_ptr()) }
    }
}

/// Which kernel computes a problem, and why not another.
pub struct Decision {
    raw: NonNull<raw::tn_decision>,
}

unsafe impl Send for Decision {}
unsafe impl Sync for Decision {}

/// Explains a problem by its text: "matmul:f32:m=512,n=512,k=64@cpu:0".
pub fn explain(problem: &str, context: Option<&Context>) -> Result<Decision> {
    let problem = c_string(problem)?;
    let context = context.map_or(null(), Context::as_raw);
    Decision::from_call(|out, err| unsafe { raw::tn_explain(context, problem.as_ptr(), out, err) })
}

impl Decision {
    pub(crate) fn from_call(
        call: impl FnOnce(*mut *mut raw::tn_decision, *mut raw::tn_error) -> raw::tn_status,
    ) -> Result<Decision> {
        let mut made = null_mut();
        check(|err| call(&mut made, err))?;
        Ok(Decision { raw: NonNull::new(made).expect("a decision that was made") })
    }

    /// The kernel that runs now, if there is one.
    pub fn kernel(&self) -> Option<&str> {
        unsafe { raw::tn_decision_runs_now(self.as_raw()).as_ref() }.map(|one| text(one.kernel))
    }

    /// Every kernel, best first, with the verdict on it and the reason why it is refused.
    pub fn candidates(&self) -> Vec<(&str, &str, Option<&str>)> {
        let count = unsafe { raw::tn_decision_count(self.as_raw()) };
        let rows = (0..count).filter_map(|at| unsafe { raw::tn_decision_candidate(self.as_raw(), at).as_ref() });
        rows.map(|one| {
            let verdict = text(unsafe { raw::tn_verdict_name(one.verdict) });
            let why = unsafe { one.why.as_ref() }.map(|why| field(&why.text));
            (text(one.kernel), verdict, why)
        })
        .collect()
    }

    /// The problem's text, with its device.
    pub fn problem(&self) -> &str {
        text(unsafe { raw::tn_decision_problem(self.as_raw()) })
    }

    pub fn as_raw(&self) -> *const raw::tn_decision {
        self.raw.as_ptr()
    }
}

impl Drop for Decision {
    fn drop(&mut self) {
        unsafe { raw::tn_decision_release(self.raw.as_ptr()) }
    }
}
